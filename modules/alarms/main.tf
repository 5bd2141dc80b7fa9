locals {
  kind = var.workflow != null ? "workflow" : var.operation != null ? "operation" : "pipeline"

  # What else a function needs, and what may come back to the queue.
  needed  = { operation = "table or secret", pipeline = "table or topic", workflow = "table or state machine" }
  looping = { operation = "dead letters", pipeline = "notifications", workflow = "dead letters" }

  # A queue is named by its name, not its URL or ARN. Without comparison and missing, an alarm goes off above its
  # threshold, and missing data is no alarm.
  alarms = merge({
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
    # The reconciler's runs tell of it as well.
    misconfigured = {
      description = "A function was refused access, or a ${local.needed[local.kind]} is missing. Messages are retried until they reach the dead-letter queue."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "Misconfigured"
      namespace   = "IdempotentConsumer"
      period      = length(var.reconciler_function_names) > 0 ? local.run_period : 60
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
    recursion = {
      description = "Lambda broke up a loop of this function, SQS and SNS, and dropped what was in it. Something sends the ${local.looping[local.kind]} back to the queue."
      dimensions  = { FunctionName = var.function_name }
      metric      = "RecursiveInvocationsDropped"
      namespace   = "AWS/Lambda"
      period      = 300
      statistic   = "Sum"
      threshold   = 0
    }
    rejected = {
      description = "Events that can never succeed came in. They are in the dead-letter queue."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "Rejected"
      namespace   = "IdempotentConsumer"
      period      = 300
      statistic   = "Sum"
      threshold   = var.rejected_threshold
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
  }, concat(local.conflict_alarms, local.operation_alarms, local.reconciler_alarms, local.workflow_alarms)...)

  # A workflow's conflicts end as failed executions: without a function to guard it, nothing counts them.
  conflict_alarms = [for kind in [local.kind] : {
    conflicts = {
      description = "Events came with an id that was used for other content, or for a row that must not be overwritten. They are in the dead-letter queue."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "Conflicts"
      namespace   = "IdempotentConsumer"
      period      = 300
      statistic   = "Sum"
      threshold   = var.conflicts_threshold
    }
  } if kind != "workflow"]

  # Those where events are lost if nobody acts. The others tell of symptoms.
  at_risk = setintersection(keys(local.alarms), [
    "dead-letters", "executions-aborted", "executions-timed-out", "failures-undelivered", "misconfigured", "oldest-message",
    "outcome-unknown", "recursion", "stale-pending",
  ])
}

resource "aws_cloudwatch_metric_alarm" "consumer" {
  for_each = local.alarms

  alarm_actions       = var.actions
  alarm_description   = each.value.description
  alarm_name          = "${var.consumer_name}-${each.key}"
  comparison_operator = lookup(each.value, "comparison", "GreaterThanThreshold")
  dimensions          = each.value.dimensions
  evaluation_periods  = 1
  metric_name         = each.value.metric
  namespace           = each.value.namespace
  ok_actions          = var.actions
  period              = each.value.period
  statistic           = each.value.statistic
  tags                = var.tags
  threshold           = each.value.threshold
  treat_missing_data  = lookup(each.value, "missing", "notBreaching")
}

resource "aws_cloudwatch_composite_alarm" "at_risk" {
  alarm_actions     = var.at_risk_actions
  alarm_description = "Events of ${var.consumer_name} are lost if nobody acts: one of ${join(", ", local.at_risk)} is on."
  alarm_name        = "${var.consumer_name}-events-at-risk"
  alarm_rule        = join(" OR ", [for key in local.at_risk : "ALARM(\"${aws_cloudwatch_metric_alarm.consumer[key].alarm_name}\")"])
  ok_actions        = var.at_risk_actions
  tags              = var.tags
}
