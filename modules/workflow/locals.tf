locals {
  retention_seconds = coalesce(var.retention_seconds, ceil((var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400))

  # As the queue rounds it.
  queue_retention_seconds = floor(var.queue.retention_days * 86400 + 0.5)

  # AWS's advice: six times the function's timeout, plus the time a batch is gathered.
  visibility_timeout_seconds = coalesce(
    var.queue.visibility_timeout_seconds,
    6 * var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0)
  )

  # The default lasts for all receives within the retention: what expires in the queue reaches no dead-letter queue.
  backoff_max_seconds = coalesce(
    var.queue.backoff_max_seconds,
    max(
      local.visibility_timeout_seconds,
      min(
        900,
        ceil(local.queue_retention_seconds / var.queue.max_receive_count) - 1 - coalesce(var.function.batching_window_seconds, 0)
      )
    )
  )

  guard_function = merge(var.function, var.guard_function, { reserved_concurrency = null })

  guard_settings = {
    CONSUMER_NAME     = var.name
    IDEMPOTENCY_TABLE = aws_dynamodb_table.idempotency.name
  }

  # What the function reads when it starts. What is not set is left out: an empty value is a value.
  starter_settings = merge(
    local.guard_settings,
    {
      BACKOFF_MAX_SECONDS        = tostring(local.backoff_max_seconds)
      DEAD_LETTER_QUEUE_URL      = module.queue.dead_letter_queue_url
      EVENT_ENVELOPE             = var.event.envelope
      MAX_RECEIVE_COUNT          = tostring(var.queue.max_receive_count)
      QUEUE_URL                  = module.queue.queue_url
      RETENTION_SECONDS          = tostring(local.queue_retention_seconds)
      STATE_MACHINE_ARN          = aws_sfn_state_machine.workflow.arn
      VISIBILITY_TIMEOUT_SECONDS = tostring(local.visibility_timeout_seconds)
      WORKFLOW_NAMESPACE         = var.namespace
      WORKFLOW_RETENTION_SECONDS = tostring(local.retention_seconds)
    },
    { for path in var.event.fingerprint[*] : "EVENT_FINGERPRINT" => path },
    { for path in var.event.id[*] : "EVENT_ID" => path },
  )
}
