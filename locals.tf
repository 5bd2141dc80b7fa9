locals {
  # The default lasts for all receives within the retention: what expires in the queue reaches no dead-letter queue.
  # The time that a batch is gathered comes on top of each.
  backoff_max_seconds = coalesce(
    var.queue.backoff_max_seconds,
    max(
      local.visibility_timeout_seconds,
      min(
        900,
        ceil(local.retention_seconds / local.max_receive_count) - 1 - coalesce(var.function.batching_window_seconds, 0)
      )
    )
  )

  ledger_table_name = "${var.name}-processed-events"

  # Records that wait behind a failed one of their FIFO group are received, and counted, as well.
  max_receive_count = coalesce(var.queue.max_receive_count, var.queue.fifo ? 10 : 5)

  # An alarm at or above the retention could never fire: the message is gone by then.
  oldest_message_age_seconds = coalesce(
    var.alarms.oldest_message_age_seconds, min(3600, floor(var.queue.retention_days * 43200))
  )

  # A pending row that is younger belongs to a message in work.
  reconciler_threshold_seconds = coalesce(var.reconciler.threshold_seconds, max(900, 2 * local.visibility_timeout_seconds))

  # As the queue rounds it.
  retention_seconds = floor(var.queue.retention_days * 86400 + 0.5)

  # None or one. A list of known length even while the ARN of a new topic is unknown.
  topic_arns = var.notification.create_topic ? aws_sns_topic.notifications[*].arn : var.notification.topic_arn[*]

  # AWS's advice: six times the function's timeout, plus the time a batch is gathered.
  visibility_timeout_seconds = coalesce(
    var.queue.visibility_timeout_seconds,
    6 * var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0)
  )
}

# What the functions read when they start. What is not set is left out: an empty value is a value.
locals {
  settings = merge(
    {
      BACKOFF_MAX_SECONDS        = tostring(local.backoff_max_seconds)
      BUSINESS_HASH_KEY          = var.business_table.hash_key
      BUSINESS_HASH_KEY_TYPE     = var.business_table.hash_key_type
      BUSINESS_TABLE             = module.tables.business_table_name
      CONSUMER_NAME              = var.name
      DEAD_LETTER_QUEUE_URL      = module.queue.dead_letter_queue_url
      EVENT_ENVELOPE             = var.event.envelope
      EVENT_ITEM                 = var.event.item
      EVENT_WRITE_MODE           = var.event.write_mode
      LEDGER_TABLE               = module.tables.ledger_table_name
      MAX_RECEIVE_COUNT          = tostring(local.max_receive_count)
      NOTIFICATION_ATTRIBUTES    = jsonencode(var.notification.attributes)
      NOTIFICATION_MAX_BYTES     = tostring(var.notification.max_bytes)
      NOTIFICATION_MESSAGE       = var.notification.message
      QUEUE_URL                  = module.queue.queue_url
      RETENTION_SECONDS          = tostring(local.retention_seconds)
      TTL_WINDOW_DAYS            = tostring(var.ttl_window_days)
      VISIBILITY_TIMEOUT_SECONDS = tostring(local.visibility_timeout_seconds)
    },
    { for path in var.event.fingerprint[*] : "EVENT_FINGERPRINT" => path },
    { for path in var.event.id[*] : "EVENT_ID" => path },
    { for path in var.event.version[*] : "EVENT_VERSION" => path },
    { for key in var.business_table.range_key[*] : "BUSINESS_RANGE_KEY" => key },
    { for key in var.business_table.range_key[*] : "BUSINESS_RANGE_KEY_TYPE" => var.business_table.range_key_type },
    { for arn in local.topic_arns : "TOPIC_ARN" => arn },
  )

  reconciler_settings = merge(
    {
      CONSUMER_NAME                = var.name
      LEDGER_TABLE                 = module.tables.ledger_table_name
      RECONCILER_THRESHOLD_SECONDS = tostring(local.reconciler_threshold_seconds)
      TTL_WINDOW_DAYS              = tostring(var.ttl_window_days)
    },
    { for arn in local.topic_arns : "TOPIC_ARN" => arn },
  )

  # Written out, because a validation of var.function cannot refer to what is built from it.
  reserved_environment = [
    # The settings above.
    "BACKOFF_MAX_SECONDS", "BUSINESS_HASH_KEY", "BUSINESS_HASH_KEY_TYPE", "BUSINESS_RANGE_KEY",
    "BUSINESS_RANGE_KEY_TYPE", "BUSINESS_TABLE", "CONSUMER_NAME", "DEAD_LETTER_QUEUE_URL", "EVENT_ENVELOPE",
    "EVENT_FINGERPRINT", "EVENT_ID", "EVENT_ITEM", "EVENT_VERSION", "EVENT_WRITE_MODE", "LEDGER_TABLE",
    "MAX_RECEIVE_COUNT", "NOTIFICATION_ATTRIBUTES", "NOTIFICATION_MAX_BYTES", "NOTIFICATION_MESSAGE", "QUEUE_URL",
    "RECONCILER_THRESHOLD_SECONDS", "RETENTION_SECONDS", "TOPIC_ARN", "TTL_WINDOW_DAYS",
    "VISIBILITY_TIMEOUT_SECONDS",
    # Lambda's own: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
    "_HANDLER", "_X_AMZN_TRACE_ID", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
  ]
}
