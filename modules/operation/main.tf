# Messages arrive here; what cannot be processed ends in the dead-letter queue.
module "queue" {
  source = "../queue"

  dead_letter_retention_days = var.queue.dead_letter_retention_days
  fifo                       = var.queue.fifo
  kms_key_arn                = var.encryption.kms_key_arn
  max_receive_count          = local.max_receive_count
  name                       = var.name
  producers                  = var.queue.producers
  retention_days             = var.queue.retention_days
  tags                       = var.tags
  visibility_timeout_seconds = local.visibility_timeout_seconds
}

# The ledger alone: what an operation changes is somewhere else. Unfinished rows are listed by its index.
module "tables" {
  source = "../tables"

  deletion_protection = var.deletion_protection
  kms_key_arn         = var.encryption.kms_key_arn
  ledger_table_name   = local.ledger_table_name
  tags                = var.tags
}

# The worker claims an event in the ledger, runs the effect and records what became of it.
module "function" {
  source = "../function"

  environment = merge(var.function.environment, local.settings)
  function    = var.function
  intake = {
    batch_size            = var.batch_size
    dead_letter_queue_arn = module.queue.dead_letter_queue_arn
    queue_arn             = module.queue.queue_arn
  }
  kms_key_arn        = var.encryption.kms_key_arn
  log_retention_days = var.log_retention_days
  name               = "${var.name}-worker"
  rights             = local.rights
  shipped_handler    = local.shipped_handler
  tags               = var.tags
}

module "alarms" {
  source = "../alarms"

  actions                    = var.alarms.actions
  at_risk_actions            = var.alarms.at_risk_actions
  conflicts_threshold        = var.alarms.conflicts
  consumer_name              = var.name
  dashboard                  = var.alarms.dashboard
  dead_letter_queue_name     = module.queue.dead_letter_queue_name
  duration_threshold_ms      = var.function.timeout_seconds * 10 * var.alarms.duration_percent
  errors_threshold           = var.alarms.errors
  function_name              = module.function.function_name
  ledger_table_name          = module.tables.ledger_table_name
  oldest_message_age_seconds = local.oldest_message_age_seconds
  operation                  = { failed_threshold = var.alarms.failed }
  queue_name                 = module.queue.queue_name
  region                     = split(":", module.function.function_arn)[3]
  rejected_threshold         = var.alarms.rejected
  tags                       = var.tags
  throttles_threshold        = var.alarms.throttles
}
