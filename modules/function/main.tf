locals {
  handler = coalesce(var.function.handler, var.shipped_handler)
  package = coalesce(var.function.package, "${path.module}/../../lambda/dist/idempotent-consumer.zip")

  # Before the first apply no address is known; a plan judges the rest.
  planned_environment = { for name, value in var.environment : name => value if !contains(["DEAD_LETTER_QUEUE_URL", "QUEUE_URL", "STATE_MACHINE_ARN", "TOPIC_ARN"], name) }

  # Lambda measures the JSON of the variables, with <, > and & as they are; a backslash within one is two bytes. In bytes,
  # and length() counts characters: so by way of base64, whose 4 characters are 3 bytes.
  environment_sizes = { for part, variables in { all = var.environment, planned = local.planned_environment } :
    part => floor(length(trim(base64encode(replace(replace(jsonencode(variables), "\\\\", ".."), "/\\\\u00(26|3c|3e)/", "<")), "=")) * 3 / 4)
  }

  # A size is no secret, even if a value is.
  environment_bytes = nonsensitive(local.environment_sizes[local.environment_sizes.planned > 4096 ? "planned" : "all"])
}

# Made before the function, which has no right to make it: so the retention holds from the first line on.
resource "aws_cloudwatch_log_group" "worker" {
  # checkov:skip=CKV_AWS_338:log_retention_days says it. What became of an event is kept in the ledger, not in the log.

  kms_key_id        = var.kms_key_arn
  name              = "/aws/lambda/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "worker" {
  # checkov:skip=CKV_AWS_116:A dead-letter queue of a function is for asynchronous calls. SQS and Step Functions wait for the answer; a run of the reconciler that fails loses nothing, since the next one finds the same rows.
  # checkov:skip=CKV_AWS_272:A signing profile belongs to an account. The zip's hash is in each plan.

  architectures                  = [var.function.architecture]
  filename                       = local.package
  function_name                  = var.name
  handler                        = local.handler
  kms_key_arn                    = var.kms_key_arn
  layers                         = var.function.layers
  memory_size                    = var.function.memory_mb
  publish                        = var.function.snap_start
  reserved_concurrent_executions = var.function.reserved_concurrency
  role                           = aws_iam_role.worker.arn
  runtime                        = var.function.runtime
  source_code_hash               = filebase64sha256(local.package)
  tags                           = var.tags
  timeout                        = var.function.timeout_seconds

  environment {
    variables = var.environment
  }

  # INFO, because the metrics are log lines of that level.
  logging_config {
    application_log_level = "INFO"
    log_format            = "JSON"
    log_group             = aws_cloudwatch_log_group.worker.name
  }

  dynamic "snap_start" {
    for_each = var.function.snap_start ? [1] : []

    content {
      apply_on = "PublishedVersions"
    }
  }

  tracing_config {
    mode = "Active"
  }

  dynamic "vpc_config" {
    for_each = var.function.vpc[*]

    content {
      security_group_ids = vpc_config.value.security_group_ids
      subnet_ids         = vpc_config.value.subnet_ids
    }
  }

  lifecycle {
    precondition {
      condition     = var.function.package == null || try(fileexists(local.package), false)
      error_message = "function.package is ${jsonencode(local.package)}, and there is no such file: give the path of the function's zip, or null for the one that comes with the module."
    }

    # Lambda itself refuses the function only when the queues and tables are made.
    precondition {
      condition     = local.environment_bytes <= 4096
      error_message = "The function's variables are at least ${local.environment_bytes} bytes of JSON, but Lambda takes at most 4096: shorten function.environment, or the paths that are set (JMESPath)."
    }
  }

  # Lambda makes the network interfaces with the role's rights.
  depends_on = [aws_iam_role_policy.worker]
}

# Only a published version is a snapshot.
resource "aws_lambda_alias" "live" {
  count = var.function.snap_start ? 1 : 0

  description      = "The version that reads the queue."
  function_name    = aws_lambda_function.worker.function_name
  function_version = aws_lambda_function.worker.version
  name             = "live"
}

resource "aws_lambda_event_source_mapping" "intake" {
  count = var.intake == null ? 0 : 1

  batch_size                         = var.intake.batch_size
  enabled                            = var.function.enabled
  event_source_arn                   = var.intake.queue_arn
  function_name                      = var.function.snap_start ? aws_lambda_alias.live[0].arn : aws_lambda_function.worker.arn
  function_response_types            = ["ReportBatchItemFailures"]
  maximum_batching_window_in_seconds = var.function.batching_window_seconds
  tags                               = var.tags

  dynamic "scaling_config" {
    for_each = var.function.maximum_concurrency[*]

    content {
      maximum_concurrency = scaling_config.value
    }
  }

  # Without its rights on the queue the mapping waits minutes before it fails.
  depends_on = [aws_iam_role_policy.additional, aws_iam_role_policy.worker]
}
