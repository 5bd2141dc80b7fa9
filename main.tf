# Messages arrive here; what cannot be processed ends in the dead-letter queue.
module "queue" {
  source = "./modules/queue"

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

# The ledger remembers each event; its row and the business rows are written in one transaction.
module "tables" {
  source = "./modules/tables"

  business_table      = var.business_table
  business_table_name = var.business_table_name
  deletion_protection = var.deletion_protection
  kms_key_arn         = var.encryption.kms_key_arn
  ledger_table_name   = local.ledger_table_name
  pending_index       = var.reconciler.enabled
  tags                = var.tags
}

# Committed events are announced here. In order if the queue is in order.
resource "aws_sns_topic" "notifications" {
  count = var.notification.create_topic ? 1 : 0

  fifo_topic        = var.queue.fifo
  kms_master_key_id = var.encryption.kms_key_arn
  name              = "${var.name}-notifications${var.queue.fifo ? ".fifo" : ""}"
  tags              = var.tags
}

# The worker reads the queue, writes both tables and publishes; locals_function.tf has its rights.
module "function" {
  source = "./modules/function"

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

# Publishes what was committed but never announced: its message is gone, or its receives are used up.
module "reconciler" {
  source = "./modules/reconciler"
  count  = var.reconciler.enabled ? 1 : 0

  consumer_name      = var.name
  environment        = merge(var.function.environment, local.reconciler_settings)
  function           = var.function
  kms_key_arn        = var.encryption.kms_key_arn
  ledger_table_arn   = module.tables.ledger_table_arn
  log_retention_days = var.log_retention_days
  reconciler         = var.reconciler
  tags               = var.tags
  topic_arns         = local.topic_arns
}

module "alarms" {
  source = "./modules/alarms"

  actions                     = var.alarms.actions
  at_risk_actions             = var.alarms.at_risk_actions
  business_table_name         = module.tables.business_table_name
  conflicts_threshold         = var.alarms.conflicts
  consumer_name               = var.name
  dashboard                   = var.alarms.dashboard
  dead_letter_queue_name      = module.queue.dead_letter_queue_name
  duration_threshold_ms       = var.function.timeout_seconds * 10 * var.alarms.duration_percent
  errors_threshold            = var.alarms.errors
  function_name               = module.function.function_name
  ledger_table_name           = module.tables.ledger_table_name
  oldest_message_age_seconds  = local.oldest_message_age_seconds
  queue_name                  = module.queue.queue_name
  reconciler_function_names   = module.reconciler[*].function_name
  reconciler_interval_minutes = var.reconciler.interval_minutes
  region                      = split(":", module.function.function_arn)[3]
  rejected_threshold          = var.alarms.rejected
  stale_pending_threshold     = var.alarms.stale_pending
  tags                        = var.tags
  throttles_threshold         = var.alarms.throttles
  topic_arns                  = local.topic_arns
}
