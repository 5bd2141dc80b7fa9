locals {
  name = "${var.consumer_name}-reconciler"

  # The one that comes with the module, whatever the worker runs: nothing of the caller's code is needed here.
  package = "${path.module}/../../lambda/dist/idempotent-consumer.zip"
}

# Made before the function, which has no right to make it: so the retention holds from the first line on.
resource "aws_cloudwatch_log_group" "reconciler" {
  kms_key_id        = var.kms_key_arn
  name              = "/aws/lambda/${local.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_lambda_function" "reconciler" {
  architectures    = [var.function.architecture]
  filename         = local.package
  function_name    = local.name
  handler          = "idempotent_consumer.reconciler.handler"
  kms_key_arn      = var.kms_key_arn
  memory_size      = var.reconciler.memory_mb
  role             = aws_iam_role.reconciler.arn
  runtime          = var.function.runtime
  source_code_hash = filebase64sha256(local.package)
  tags             = var.tags
  timeout          = var.reconciler.timeout_seconds

  environment {
    variables = var.environment
  }

  # INFO, because the metrics are log lines of that level.
  logging_config {
    application_log_level = "INFO"
    log_format            = "JSON"
    log_group             = aws_cloudwatch_log_group.reconciler.name
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

  # Lambda makes the network interfaces with the role's rights.
  depends_on = [aws_iam_role_policy.reconciler]
}

# The scheduler hands a run over and does not wait for it: it is Lambda that would try a failed one again, or keep
# one that is throttled until the next is due, and longer.
resource "aws_lambda_function_event_invoke_config" "reconciler" {
  function_name                = aws_lambda_function.reconciler.function_name
  maximum_event_age_in_seconds = min(21600, var.reconciler.interval_minutes * 60)
  maximum_retry_attempts       = 0
}

resource "aws_scheduler_schedule" "reconciler" {
  description         = "Publishes what ${var.consumer_name} committed but did not announce."
  name                = local.name
  schedule_expression = var.reconciler.interval_minutes == 1 ? "rate(1 minute)" : "rate(${var.reconciler.interval_minutes} minutes)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_function.reconciler.arn
    role_arn = aws_iam_role.schedule.arn

    # The next run comes anyway.
    retry_policy {
      maximum_retry_attempts = 0
    }
  }

  # The first run comes at once.
  depends_on = [
    aws_iam_role_policy.additional,
    aws_iam_role_policy.schedule,
    aws_lambda_function_event_invoke_config.reconciler,
  ]
}
