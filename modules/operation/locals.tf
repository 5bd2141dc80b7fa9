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

  # By then the worker is dead: no call outlasts the function, and two clocks that are wrong by a minute each differ by two.
  lease_ms = coalesce(var.operation.lease_ms, (var.function.timeout_seconds + 120) * 1000)

  ledger_table_name = "${var.name}-processed-events"

  # For each attempt one receive, and one that finds another worker at it; the rest is for crashes and throttles.
  max_receive_count = coalesce(var.queue.max_receive_count, 2 * var.operation.max_attempts + 5)

  # An alarm at or above the retention could never fire: the message is gone by then.
  oldest_message_age_seconds = coalesce(
    var.alarms.oldest_message_age_seconds,
    min(max(3600, 2 * (ceil(local.lease_ms / 1000) + local.settle_seconds)), floor(var.queue.retention_days * 43200))
  )

  # As the queue rounds it.
  retention_seconds = floor(var.queue.retention_days * 86400 + 0.5)

  settle_seconds = coalesce(var.operation.settle_seconds, var.operation.effect_timeout_seconds + 120)

  shipped_handler = "idempotent_consumer.http_operation.handler"

  # AWS's advice: six times the function's timeout, plus the time a batch is gathered.
  visibility_timeout_seconds = coalesce(
    var.queue.visibility_timeout_seconds,
    6 * var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0)
  )
}

locals {
  # AWS's action names, each with the call that needs it in docs/privileges.md.
  rights = concat(
    [{ sid = "ClaimInLedger", actions = ["dynamodb:UpdateItem"], resources = [module.tables.ledger_table_arn] }],
    # By the object: how many they are must not depend on an ARN.
    [for secret in var.http[*].secret : {
      sid       = "ReadSecret"
      actions   = [secret.parameter_arn == null ? "secretsmanager:GetSecretValue" : "ssm:GetParameter"]
      resources = [coalesce(secret.parameter_arn, secret.secret_arn)]
    } if secret != null],
  )
}

# The limits of lambda/src/idempotent_consumer/http/url.py. In JMESPath's quotes, \' stands for '.
locals {
  # [host without the dot at its end and without its port]
  http_host = "^([A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(?:\\.[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*)\\.?(?::[1-9][0-9]{0,4})?$"

  http_default_port = { http = "/\\.?(:80)?$/", https = "/\\.?(:443)?$/" }

  # What a path that writes an address out begins with: [scheme, host and port]
  http_authority = "^\\s*(?:\\[\\s*)?'((?i:https?))://([^'/?#]*)"

  http_address = "${local.http_authority}(?:[A-Za-z0-9._~!$&()*+,;=:@/-]|\\\\'|%[0-9A-Fa-f]{2})*(?:\\?(?:[A-Za-z0-9._~!$&()*+,;=:@/?-]|\\\\'|%[0-9A-Fa-f]{2})*)?'"

  # An empty path segment, one of dots, a control character, a query before the other parts of a list.
  http_odd_address = join("|", [
    "${local.http_authority}(?:[^'?]|\\\\')*(?://|(?:/|%2[Ff]|%5[Cc])(?:\\.|%2[Ee]){1,2}(?:;|%3[Bb]|/|%2[Ff]|%5[Cc]|[?'])|%[01][0-9A-Fa-f]|%7[Ff])",
    "^\\s*\\[\\s*'(?:[^'?]|\\\\')*\\?(?:[^']|\\\\')*'\\s*,",
  ])
}

# What the function reads when it starts. What is not set is left out: an empty value is a value.
locals {
  settings = merge(
    {
      BACKOFF_MAX_SECONDS              = tostring(local.backoff_max_seconds)
      CONSUMER_NAME                    = var.name
      DEAD_LETTER_QUEUE_URL            = module.queue.dead_letter_queue_url
      EVENT_ENVELOPE                   = var.event.envelope
      LEDGER_TABLE                     = module.tables.ledger_table_name
      MAX_RECEIVE_COUNT                = tostring(local.max_receive_count)
      OPERATION_EFFECT_TIMEOUT_SECONDS = tostring(var.operation.effect_timeout_seconds)
      OPERATION_LEASE_MS               = tostring(local.lease_ms)
      OPERATION_MAX_AGE_SECONDS        = tostring(var.operation.max_age_seconds)
      OPERATION_MAX_ATTEMPTS           = tostring(var.operation.max_attempts)
      OPERATION_RETRY_SECONDS          = tostring(var.operation.retry_seconds)
      OPERATION_SETTLE_SECONDS         = tostring(local.settle_seconds)
      OPERATION_UNCERTAIN              = var.operation.uncertain
      QUEUE_URL                        = module.queue.queue_url
      RETENTION_SECONDS                = tostring(local.retention_seconds)
      TTL_WINDOW_DAYS                  = tostring(var.ttl_window_days)
      VISIBILITY_TIMEOUT_SECONDS       = tostring(local.visibility_timeout_seconds)
    },
    { for path in var.event.fingerprint[*] : "EVENT_FINGERPRINT" => path },
    { for path in var.event.id[*] : "EVENT_ID" => path },
    # A null default cannot be asked for in an object: "" is said in its place.
    { for http in var.http[*] : "OPERATION_HTTP" => jsonencode(merge(http, {
      body               = http.body == "" ? null : http.body
      idempotency_header = http.idempotency_header == "" ? null : http.idempotency_header
    })) },
  )

  # Written out, because a validation of var.function cannot refer to what is built from it.
  reserved_environment = [
    # The settings above.
    "BACKOFF_MAX_SECONDS", "CONSUMER_NAME", "DEAD_LETTER_QUEUE_URL", "EVENT_ENVELOPE", "EVENT_FINGERPRINT", "EVENT_ID",
    "LEDGER_TABLE", "MAX_RECEIVE_COUNT", "OPERATION_EFFECT_TIMEOUT_SECONDS", "OPERATION_HTTP", "OPERATION_LEASE_MS",
    "OPERATION_MAX_AGE_SECONDS", "OPERATION_MAX_ATTEMPTS", "OPERATION_RETRY_SECONDS", "OPERATION_SETTLE_SECONDS",
    "OPERATION_UNCERTAIN", "QUEUE_URL", "RETENTION_SECONDS", "TTL_WINDOW_DAYS", "VISIBILITY_TIMEOUT_SECONDS",
    # Lambda's own: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
    "_HANDLER", "_X_AMZN_TRACE_ID", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
  ]
}
