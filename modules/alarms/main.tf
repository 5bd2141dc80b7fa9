locals {
  # A queue is named by its name, not its URL or ARN.
  alarms = {
    # Messages that the redrive moves do not count as sent, so only what is visible tells.
    dead-letters = {
      description = "Messages are in the dead-letter queue."
      dimensions  = { QueueName = var.dead_letter_queue_name }
      metric      = "ApproximateNumberOfMessagesVisible"
      namespace   = "AWS/SQS"
      period      = 60
      statistic   = "Maximum"
      threshold   = 0
    }
    duration = {
      description = "A call of the function took almost as long as its timeout allows (milliseconds)."
      dimensions  = { FunctionName = var.function_name }
      metric      = "Duration"
      namespace   = "AWS/Lambda"
      period      = 300
      statistic   = "Maximum"
      threshold   = var.duration_threshold_ms
    }
    errors = {
      description = "Calls of the function failed as a whole."
      dimensions  = { FunctionName = var.function_name }
      metric      = "Errors"
      namespace   = "AWS/Lambda"
      period      = 300
      statistic   = "Sum"
      threshold   = var.errors_threshold
    }
    misconfigured = {
      description = "The function was refused access, or a table or topic is missing. Messages are retried until they reach the dead-letter queue."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "Misconfigured"
      namespace   = "IdempotentConsumer"
      period      = 60
      statistic   = "Sum"
      threshold   = 0
    }
    oldest-message = {
      description = "The oldest message waits too long (seconds): the consumer falls behind, or keeps failing."
      dimensions  = { QueueName = var.queue_name }
      metric      = "ApproximateAgeOfOldestMessage"
      namespace   = "AWS/SQS"
      period      = 60
      statistic   = "Maximum"
      threshold   = var.oldest_message_age_seconds
    }
    throttles = {
      description = "Calls of the function were throttled. Each one counts as a receive: messages can reach the dead-letter queue without having run."
      dimensions  = { FunctionName = var.function_name }
      metric      = "Throttles"
      namespace   = "AWS/Lambda"
      period      = 300
      statistic   = "Sum"
      threshold   = var.throttles_threshold
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "consumer" {
  for_each = local.alarms

  alarm_actions       = var.actions
  alarm_description   = each.value.description
  alarm_name          = "${var.consumer_name}-${each.key}"
  comparison_operator = "GreaterThanThreshold"
  dimensions          = each.value.dimensions
  evaluation_periods  = 1
  metric_name         = each.value.metric
  namespace           = each.value.namespace
  ok_actions          = var.actions
  period              = each.value.period
  statistic           = each.value.statistic
  tags                = var.tags
  threshold           = each.value.threshold
  treat_missing_data  = "notBreaching"
}
