# modules/alarms: which metric each alarm watches, and from where on. The dashboard is in tests/plan/test_dashboard.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  actions                    = ["arn:aws:sns:eu-central-1:111122223333:chat"]
  at_risk_actions            = ["arn:aws:sns:eu-central-1:111122223333:pager"]
  business_table_name        = "order_records"
  conflicts_threshold        = 4
  consumer_name              = "orders"
  dead_letter_queue_name     = "orders-dlq"
  duration_threshold_ms      = 24000
  errors_threshold           = 2
  function_name              = "orders-worker"
  ledger_table_name          = "orders-processed-events"
  oldest_message_age_seconds = 3600
  queue_name                 = "orders"
  reconciler_function_names  = ["orders-reconciler"]
  region                     = "eu-central-1"
  rejected_threshold         = 5
  stale_pending_threshold    = 6
  throttles_threshold        = 3
}

run "alarms" {
  module {
    source = "./modules/alarms"
  }

  # Visible messages only: those in flight would set it off over an empty queue, and a redrive counts as nothing sent.
  assert {
    condition = {
      for key, alarm in aws_cloudwatch_metric_alarm.consumer :
      key => "${alarm.statistic} of ${alarm.namespace} ${alarm.metric_name} ${jsonencode(alarm.dimensions)} ${alarm.comparison_operator} ${alarm.threshold} in ${alarm.period} s"
      } == {
      conflicts         = "Sum of IdempotentConsumer Conflicts {\"Consumer\":\"orders\"} GreaterThanThreshold 4 in 300 s"
      dead-letters      = "Maximum of AWS/SQS ApproximateNumberOfMessagesVisible {\"QueueName\":\"orders-dlq\"} GreaterThanThreshold 0 in 60 s"
      duration          = "Maximum of AWS/Lambda Duration {\"FunctionName\":\"orders-worker\"} GreaterThanThreshold 24000 in 300 s"
      errors            = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-worker\"} GreaterThanThreshold 2 in 300 s"
      misconfigured     = "Sum of IdempotentConsumer Misconfigured {\"Consumer\":\"orders\"} GreaterThanThreshold 0 in 300 s"
      oldest-message    = "Maximum of AWS/SQS ApproximateAgeOfOldestMessage {\"QueueName\":\"orders\"} GreaterThanThreshold 3600 in 60 s"
      reconciler-errors = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-reconciler\"} GreaterThanThreshold 0 in 300 s"
      reconciler-silent = "Sum of AWS/Lambda Invocations {\"FunctionName\":\"orders-reconciler\"} LessThanThreshold 1 in 900 s"
      recursion         = "Sum of AWS/Lambda RecursiveInvocationsDropped {\"FunctionName\":\"orders-worker\"} GreaterThanThreshold 0 in 300 s"
      rejected          = "Sum of IdempotentConsumer Rejected {\"Consumer\":\"orders\"} GreaterThanThreshold 5 in 300 s"
      stale-pending     = "Maximum of IdempotentConsumer StalePending {\"Consumer\":\"orders\"} GreaterThanThreshold 6 in 300 s"
      throttles         = "Sum of AWS/Lambda Throttles {\"FunctionName\":\"orders-worker\"} GreaterThanThreshold 3 in 300 s"
    }
    error_message = "alarms"
  }

  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.consumer :
      alarm.evaluation_periods == 1 && alarm.alarm_actions == toset(var.actions) && alarm.ok_actions == toset(var.actions)
    ])
    error_message = "each alarm tells when it goes off and when it clears"
  }

  # A function that does not run reports nothing: only there no data is an alarm.
  assert {
    condition = {
      for key, alarm in aws_cloudwatch_metric_alarm.consumer : key => alarm.treat_missing_data if alarm.treat_missing_data != "notBreaching"
    } == { reconciler-silent = "breaching" }
    error_message = "missing data"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.consumer["reconciler-silent"].alarm_description == "The reconciler does not run: what is committed may stay unannounced. Also on from the alarm's creation until the first run."
    error_message = "the description says why it goes off when it is created"
  }

  assert {
    condition = output.alarm_names == tolist([
      "orders-conflicts", "orders-dead-letters", "orders-duration", "orders-errors", "orders-events-at-risk",
      "orders-misconfigured", "orders-oldest-message", "orders-reconciler-errors", "orders-reconciler-silent",
      "orders-recursion", "orders-rejected", "orders-stale-pending", "orders-throttles",
    ])
    error_message = "alarm_names"
  }

  # What is lost if nobody acts goes to the pager; the other alarms are for those who look.
  assert {
    condition = (
      aws_cloudwatch_composite_alarm.at_risk.alarm_rule == join(" OR ", [
        "ALARM(\"orders-dead-letters\")", "ALARM(\"orders-misconfigured\")", "ALARM(\"orders-oldest-message\")",
        "ALARM(\"orders-recursion\")", "ALARM(\"orders-stale-pending\")",
      ]) &&
      aws_cloudwatch_composite_alarm.at_risk.alarm_actions == toset(var.at_risk_actions) &&
      aws_cloudwatch_composite_alarm.at_risk.ok_actions == toset(var.at_risk_actions)
    )
    error_message = "the rule is ${aws_cloudwatch_composite_alarm.at_risk.alarm_rule}"
  }

  assert {
    condition     = output.dashboard_name == "orders"
    error_message = "dashboard_name"
  }
}

run "alarms_without_the_reconciler" {
  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_function_names = []
  }

  assert {
    condition     = !contains(keys(aws_cloudwatch_metric_alarm.consumer), "stale-pending") && length(aws_cloudwatch_metric_alarm.consumer) == 9
    error_message = "alarms are ${join(", ", keys(aws_cloudwatch_metric_alarm.consumer))}"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.consumer["misconfigured"].period == 60
    error_message = "the worker alone tells of it, at each call"
  }

  assert {
    condition = aws_cloudwatch_composite_alarm.at_risk.alarm_rule == join(" OR ", [
      "ALARM(\"orders-dead-letters\")", "ALARM(\"orders-misconfigured\")", "ALARM(\"orders-oldest-message\")", "ALARM(\"orders-recursion\")",
    ])
    error_message = "the rule is ${aws_cloudwatch_composite_alarm.at_risk.alarm_rule}"
  }
}

run "alarms_of_an_operation" {
  module {
    source = "./modules/alarms"
  }

  variables {
    operation                 = { failed_threshold = 7 }
    reconciler_function_names = []
  }

  assert {
    condition = {
      for key, alarm in aws_cloudwatch_metric_alarm.consumer :
      key => "${alarm.statistic} of ${alarm.namespace} ${alarm.metric_name} ${jsonencode(alarm.dimensions)} ${alarm.comparison_operator} ${alarm.threshold} in ${alarm.period} s"
      if contains(["failed", "misconfigured", "outcome-unknown"], key)
      } == {
      failed          = "Sum of IdempotentConsumer Failed {\"Consumer\":\"orders\"} GreaterThanThreshold 7 in 300 s"
      misconfigured   = "Sum of IdempotentConsumer Misconfigured {\"Consumer\":\"orders\"} GreaterThanThreshold 0 in 60 s"
      outcome-unknown = "Sum of IdempotentConsumer OutcomeUnknown {\"Consumer\":\"orders\"} GreaterThanThreshold 0 in 300 s"
    }
    error_message = "alarms"
  }

  assert {
    condition = keys(aws_cloudwatch_metric_alarm.consumer) == [
      "conflicts", "dead-letters", "duration", "errors", "failed", "misconfigured", "oldest-message", "outcome-unknown",
      "recursion", "rejected", "throttles",
    ]
    error_message = "alarms are ${join(", ", keys(aws_cloudwatch_metric_alarm.consumer))}"
  }

  # A parked event waits for a person, and failed ones were not applied.
  assert {
    condition = aws_cloudwatch_composite_alarm.at_risk.alarm_rule == join(" OR ", [
      "ALARM(\"orders-dead-letters\")", "ALARM(\"orders-misconfigured\")", "ALARM(\"orders-oldest-message\")",
      "ALARM(\"orders-outcome-unknown\")", "ALARM(\"orders-recursion\")",
    ])
    error_message = "the rule is ${aws_cloudwatch_composite_alarm.at_risk.alarm_rule}"
  }

  assert {
    condition = [for name in ["misconfigured", "recursion"] : aws_cloudwatch_metric_alarm.consumer[name].alarm_description] == [
      "A function was refused access, or a table or secret is missing. Messages are retried until they reach the dead-letter queue.",
      "Lambda broke up a loop of this function, SQS and SNS, and dropped what was in it. Something sends the dead letters back to the queue.",
    ]
    error_message = "an operation has a secret, and no notifications"
  }
}

run "alarms_of_a_workflow" {
  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_function_names = []

    workflow = {
      executions_failed_threshold    = 7
      executions_throttled_threshold = 8
      failures_rule_name             = "orders-failures"
      guard_function_names           = ["orders-guard"]
      state_machine_arn              = "arn:aws:states:eu-central-1:111122223333:stateMachine:orders"
    }
  }

  assert {
    condition = {
      for key, alarm in aws_cloudwatch_metric_alarm.consumer :
      key => "${alarm.statistic} of ${alarm.namespace} ${alarm.metric_name} ${jsonencode(alarm.dimensions)} ${alarm.comparison_operator} ${alarm.threshold} in ${alarm.period} s"
      if contains(["AWS/Events", "AWS/States"], alarm.namespace) || contains(["errors", "guard-errors", "misconfigured"], key)
      } == {
      errors               = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-worker\"} GreaterThanThreshold 2 in 300 s"
      executions-aborted   = "Sum of AWS/States ExecutionsAborted {\"StateMachineArn\":\"arn:aws:states:eu-central-1:111122223333:stateMachine:orders\"} GreaterThanThreshold 0 in 300 s"
      executions-failed    = "Sum of AWS/States ExecutionsFailed {\"StateMachineArn\":\"arn:aws:states:eu-central-1:111122223333:stateMachine:orders\"} GreaterThanThreshold 7 in 300 s"
      executions-throttled = "Sum of AWS/States ExecutionThrottled {\"StateMachineArn\":\"arn:aws:states:eu-central-1:111122223333:stateMachine:orders\"} GreaterThanThreshold 8 in 300 s"
      executions-timed-out = "Sum of AWS/States ExecutionsTimedOut {\"StateMachineArn\":\"arn:aws:states:eu-central-1:111122223333:stateMachine:orders\"} GreaterThanThreshold 0 in 300 s"
      failures-undelivered = "Sum of AWS/Events FailedInvocations {\"RuleName\":\"orders-failures\"} GreaterThanThreshold 0 in 300 s"
      guard-errors         = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-guard\"} GreaterThanThreshold 2 in 300 s"
      misconfigured        = "Sum of IdempotentConsumer Misconfigured {\"Consumer\":\"orders\"} GreaterThanThreshold 0 in 60 s"
    }
    error_message = "alarms"
  }

  # Of conflicts nothing but the letter and the failed execution tells, whichever guard there is.
  assert {
    condition = keys(aws_cloudwatch_metric_alarm.consumer) == [
      "dead-letters", "duration", "errors", "executions-aborted", "executions-failed", "executions-throttled", "executions-timed-out",
      "failures-undelivered", "guard-errors", "misconfigured", "oldest-message", "recursion", "rejected", "throttles",
    ]
    error_message = "alarms are ${join(", ", keys(aws_cloudwatch_metric_alarm.consumer))}"
  }

  # A failed execution has its letter; one that ended otherwise has it only if EventBridge could deliver it.
  assert {
    condition = aws_cloudwatch_composite_alarm.at_risk.alarm_rule == join(" OR ", [
      "ALARM(\"orders-dead-letters\")", "ALARM(\"orders-executions-aborted\")", "ALARM(\"orders-executions-timed-out\")",
      "ALARM(\"orders-failures-undelivered\")", "ALARM(\"orders-misconfigured\")", "ALARM(\"orders-oldest-message\")",
      "ALARM(\"orders-recursion\")",
    ])
    error_message = "the rule is ${aws_cloudwatch_composite_alarm.at_risk.alarm_rule}"
  }

  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.consumer :
      alarm.treat_missing_data == "notBreaching" && alarm.alarm_actions == toset(var.actions) && alarm.ok_actions == toset(var.actions)
    ])
    error_message = "each alarm tells when it goes off and when it clears"
  }

  assert {
    condition = [for name in ["misconfigured", "recursion"] : aws_cloudwatch_metric_alarm.consumer[name].alarm_description] == [
      "A function was refused access, or a table or state machine is missing. Messages are retried until they reach the dead-letter queue.",
      "Lambda broke up a loop of this function, SQS and SNS, and dropped what was in it. Something sends the dead letters back to the queue.",
    ]
    error_message = "a workflow has a state machine, and no notifications"
  }
}

run "alarms_of_a_workflow_without_a_guard_function" {
  command = plan

  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_function_names = []

    workflow = {
      executions_failed_threshold    = 0
      executions_throttled_threshold = 0
      failures_rule_name             = "orders-failures"
      guard_function_names           = []
      state_machine_arn              = "arn:aws:states:eu-central-1:111122223333:stateMachine:orders"
    }
  }

  assert {
    condition     = !contains(keys(aws_cloudwatch_metric_alarm.consumer), "guard-errors") && length(aws_cloudwatch_metric_alarm.consumer) == 13
    error_message = "alarms are ${join(", ", keys(aws_cloudwatch_metric_alarm.consumer))}"
  }
}

# Between two runs nothing is reported: a shorter period would clear the alarm each time.
run "a_rare_reconciler_is_looked_at_over_a_longer_time" {
  command = plan

  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_interval_minutes = 60
  }

  assert {
    condition = { for key, alarm in aws_cloudwatch_metric_alarm.consumer : key => alarm.period if alarm.period > 300 } == {
      misconfigured     = 3600
      reconciler-errors = 3600
      reconciler-silent = 10800
      stale-pending     = 3600
    }
    error_message = "periods"
  }
}

# CloudWatch takes no period above a day.
run "a_reconciler_once_a_day" {
  command = plan

  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_interval_minutes = 1440
  }

  assert {
    condition = { for key, alarm in aws_cloudwatch_metric_alarm.consumer : key => alarm.period if alarm.period > 300 } == {
      misconfigured     = 86400
      reconciler-errors = 86400
      reconciler-silent = 86400
      stale-pending     = 86400
    }
    error_message = "periods"
  }
}

run "a_reconciler_each_minute" {
  command = plan

  module {
    source = "./modules/alarms"
  }

  variables {
    reconciler_interval_minutes = 1
  }

  assert {
    condition = { for key, alarm in aws_cloudwatch_metric_alarm.consumer : key => alarm.period if alarm.period > 300 || key == "misconfigured" } == {
      misconfigured     = 300
      reconciler-silent = 900
    }
    error_message = "periods"
  }
}

run "no_dashboard" {
  command = plan

  module {
    source = "./modules/alarms"
  }

  variables {
    dashboard = false
  }

  assert {
    condition     = length(aws_cloudwatch_dashboard.consumer) == 0 && output.dashboard_name == null
    error_message = "no dashboard is made"
  }
}
