locals {
  name = "${var.consumer_name}-reconciler"

  # The code that comes with the module, whatever the worker runs: nothing of the caller's is needed here.
  function = merge(var.function, {
    memory_mb        = var.reconciler.memory_mb
    policy_documents = var.reconciler.policy_documents
    timeout_seconds  = var.reconciler.timeout_seconds
  })
}

# Reads no queue: a schedule calls it.
module "function" {
  source = "../function"

  environment        = var.environment
  function           = local.function
  kms_key_arn        = var.kms_key_arn
  log_retention_days = var.log_retention_days
  name               = local.name
  rights             = local.rights
  shipped_handler    = "idempotent_consumer.reconciler.handler"
  tags               = var.tags
}

# The scheduler hands a run over and does not wait for it: it is Lambda that would try a failed one again, or keep
# one that is throttled until the next is due, and longer.
resource "aws_lambda_function_event_invoke_config" "reconciler" {
  function_name                = module.function.function_name
  maximum_event_age_in_seconds = min(21600, var.reconciler.interval_minutes * 60)
  maximum_retry_attempts       = 0
}

resource "aws_scheduler_schedule" "reconciler" {
  # checkov:skip=CKV_AWS_297:It holds a rate and the function's ARN, and nothing of any event.

  description         = "Publishes what ${var.consumer_name} committed but did not announce."
  name                = local.name
  schedule_expression = var.reconciler.interval_minutes == 1 ? "rate(1 minute)" : "rate(${var.reconciler.interval_minutes} minutes)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = module.function.function_arn
    role_arn = aws_iam_role.schedule.arn

    # The next run comes anyway.
    retry_policy {
      maximum_retry_attempts = 0
    }
  }

  # The first run comes at once. The function has its rights by then.
  depends_on = [
    aws_iam_role_policy.schedule,
    aws_lambda_function_event_invoke_config.reconciler,
    module.function,
  ]
}
