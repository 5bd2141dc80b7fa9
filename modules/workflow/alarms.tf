locals {
  # An alarm at or above the retention could never fire: the message is gone by then.
  oldest_message_age_seconds = coalesce(
    var.alarms.oldest_message_age_seconds, min(3600, floor(var.queue.retention_days * 43200))
  )
}

module "alarms" {
  source = "../alarms"

  actions                    = var.alarms.actions
  at_risk_actions            = var.alarms.at_risk_actions
  consumer_name              = var.name
  dashboard                  = var.alarms.dashboard
  dead_letter_queue_name     = module.queue.dead_letter_queue_name
  duration_threshold_ms      = var.function.timeout_seconds * 10 * var.alarms.duration_percent
  errors_threshold           = var.alarms.errors
  function_name              = module.starter.function_name
  ledger_table_name          = aws_dynamodb_table.idempotency.name
  oldest_message_age_seconds = local.oldest_message_age_seconds
  queue_name                 = module.queue.queue_name
  region                     = split(":", module.starter.function_arn)[3]
  rejected_threshold         = var.alarms.rejected
  tags                       = var.tags
  throttles_threshold        = var.alarms.throttles

  workflow = {
    executions_failed_threshold    = var.alarms.executions_failed
    executions_throttled_threshold = var.alarms.executions_throttled
    failures_rule_name             = aws_cloudwatch_event_rule.failure.name
    guard_function_names           = module.guard[*].function_name
    state_machine_arn              = aws_sfn_state_machine.workflow.arn
  }
}
