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
      key => "${alarm.statistic} of ${alarm.namespace} ${alarm.metric_name} ${jsonencode(alarm.dimensions)} > ${alarm.threshold} in ${alarm.period} s"
      } == {
      conflicts         = "Sum of IdempotentConsumer Conflicts {\"Consumer\":\"orders\"} > 4 in 300 s"
      dead-letters      = "Maximum of AWS/SQS ApproximateNumberOfMessagesVisible {\"QueueName\":\"orders-dlq\"} > 0 in 60 s"
      duration          = "Maximum of AWS/Lambda Duration {\"FunctionName\":\"orders-worker\"} > 24000 in 300 s"
      errors            = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-worker\"} > 2 in 300 s"
      misconfigured     = "Sum of IdempotentConsumer Misconfigured {\"Consumer\":\"orders\"} > 0 in 60 s"
      oldest-message    = "Maximum of AWS/SQS ApproximateAgeOfOldestMessage {\"QueueName\":\"orders\"} > 3600 in 60 s"
      reconciler-errors = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-reconciler\"} > 0 in 300 s"
      recursion         = "Sum of AWS/Lambda RecursiveInvocationsDropped {\"FunctionName\":\"orders-worker\"} > 0 in 300 s"
      rejected          = "Sum of IdempotentConsumer Rejected {\"Consumer\":\"orders\"} > 5 in 300 s"
      stale-pending     = "Maximum of IdempotentConsumer StalePending {\"Consumer\":\"orders\"} > 6 in 300 s"
      throttles         = "Sum of AWS/Lambda Throttles {\"FunctionName\":\"orders-worker\"} > 3 in 300 s"
    }
    error_message = "alarms"
  }

  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.consumer :
      alarm.comparison_operator == "GreaterThanThreshold" && alarm.evaluation_periods == 1 &&
      alarm.treat_missing_data == "notBreaching" && alarm.alarm_actions == toset(var.actions) && alarm.ok_actions == toset(var.actions)
    ])
    error_message = "each alarm tells when it goes off and when it clears; no data is no alarm"
  }

  assert {
    condition = output.alarm_names == tolist([
      "orders-conflicts", "orders-dead-letters", "orders-duration", "orders-errors", "orders-events-at-risk",
      "orders-misconfigured", "orders-oldest-message", "orders-reconciler-errors", "orders-recursion",
      "orders-rejected", "orders-stale-pending", "orders-throttles",
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
    condition = aws_cloudwatch_composite_alarm.at_risk.alarm_rule == join(" OR ", [
      "ALARM(\"orders-dead-letters\")", "ALARM(\"orders-misconfigured\")", "ALARM(\"orders-oldest-message\")", "ALARM(\"orders-recursion\")",
    ])
    error_message = "the rule is ${aws_cloudwatch_composite_alarm.at_risk.alarm_rule}"
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
    condition = (
      aws_cloudwatch_metric_alarm.consumer["reconciler-errors"].period == 3600 &&
      aws_cloudwatch_metric_alarm.consumer["stale-pending"].period == 3600
    )
    error_message = "period"
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
