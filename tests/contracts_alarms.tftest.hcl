# modules/alarms: which metric each alarm watches, and from where on.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

run "alarms" {
  module {
    source = "./modules/alarms"
  }

  variables {
    actions                    = ["arn:aws:sns:eu-central-1:111122223333:pager"]
    consumer_name              = "orders"
    dead_letter_queue_name     = "orders-dlq"
    duration_threshold_ms      = 24000
    errors_threshold           = 2
    function_name              = "orders-worker"
    oldest_message_age_seconds = 3600
    queue_name                 = "orders"
    throttles_threshold        = 3
  }

  # Visible messages only: those in flight would set it off over an empty queue, and a redrive counts as nothing sent.
  assert {
    condition = {
      for key, alarm in aws_cloudwatch_metric_alarm.consumer :
      key => "${alarm.statistic} of ${alarm.namespace} ${alarm.metric_name} ${jsonencode(alarm.dimensions)} > ${alarm.threshold} in ${alarm.period} s"
      } == {
      dead-letters   = "Maximum of AWS/SQS ApproximateNumberOfMessagesVisible {\"QueueName\":\"orders-dlq\"} > 0 in 60 s"
      duration       = "Maximum of AWS/Lambda Duration {\"FunctionName\":\"orders-worker\"} > 24000 in 300 s"
      errors         = "Sum of AWS/Lambda Errors {\"FunctionName\":\"orders-worker\"} > 2 in 300 s"
      misconfigured  = "Sum of IdempotentConsumer Misconfigured {\"Consumer\":\"orders\"} > 0 in 60 s"
      oldest-message = "Maximum of AWS/SQS ApproximateAgeOfOldestMessage {\"QueueName\":\"orders\"} > 3600 in 60 s"
      throttles      = "Sum of AWS/Lambda Throttles {\"FunctionName\":\"orders-worker\"} > 3 in 300 s"
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
      "orders-dead-letters", "orders-duration", "orders-errors", "orders-misconfigured", "orders-oldest-message", "orders-throttles",
    ])
    error_message = "alarm_names"
  }
}
