data "aws_partition" "current" {}

# Messages arrive here; what cannot be processed, and the input of an execution that has failed, ends in the dead-letter queue.
module "queue" {
  source = "../queue"

  dead_letter_retention_days = var.queue.dead_letter_retention_days
  kms_key_arn                = var.encryption.kms_key_arn
  max_receive_count          = var.queue.max_receive_count
  name                       = var.name
  producers                  = var.queue.producers
  retention_days             = var.queue.retention_days
  tags                       = var.tags
  visibility_timeout_seconds = local.visibility_timeout_seconds
}

# One row for each key: who has it, and what became of the effect.
resource "aws_dynamodb_table" "idempotency" {
  # checkov:skip=CKV_AWS_119:Without encryption.kms_key_arn DynamoDB's own key encrypts it.

  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = "pk"
  name                        = "${var.name}-idempotency"
  range_key                   = "sk"
  tags                        = var.tags

  attribute {
    name = "pk"
    type = "S"
  }

  attribute {
    name = "sk"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.encryption.kms_key_arn != null
    kms_key_arn = var.encryption.kms_key_arn
  }

  # The code writes this name too. It is no variable: DynamoDB cannot rename it in one step.
  ttl {
    attribute_name = "expiresAt"
    enabled        = true
  }
}

# Starts an execution for each message, by a name that each delivery of it has again.
module "starter" {
  source = "../function"

  environment = merge(var.function.environment, local.starter_settings)
  function    = var.function
  intake = {
    batch_size            = var.batch_size
    dead_letter_queue_arn = module.queue.dead_letter_queue_arn
    queue_arn             = module.queue.queue_arn
  }
  kms_key_arn        = var.encryption.kms_key_arn
  log_retention_days = var.log_retention_days
  name               = "${var.name}-worker"
  rights             = [{ sid = "StartWorkflow", actions = ["states:StartExecution"], resources = [aws_sfn_state_machine.workflow.arn] }]
  shipped_handler    = "idempotent_consumer.starter.handler"
  tags               = var.tags
}

# Claims a key for an execution, unless Step Functions does that itself.
module "guard" {
  source = "../function"
  count  = var.guard == "function" ? 1 : 0

  environment        = merge(var.function.environment, local.guard_settings)
  function           = local.guard_function
  kms_key_arn        = var.encryption.kms_key_arn
  log_retention_days = var.log_retention_days
  name               = "${var.name}-guard"
  rights             = [{ sid = "Claim", actions = ["dynamodb:UpdateItem"], resources = [aws_dynamodb_table.idempotency.arn] }]
  shipped_handler    = "idempotent_consumer.guard.handler"
  tags               = var.tags
}

# Vended logs go to a group of this prefix without a change of CloudWatch's resource policy for each.
resource "aws_cloudwatch_log_group" "workflow" {
  # checkov:skip=CKV_AWS_338:log_retention_days says it. What became of a key is kept in the table, not in the log.

  kms_key_id        = var.encryption.kms_key_arn
  name              = "/aws/vendedlogs/states/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_sfn_state_machine" "workflow" {
  # checkov:skip=CKV_AWS_285:Execution data would put the events' bodies into the log. Failures are logged without it.

  definition = local.definition
  name       = var.name
  role_arn   = aws_iam_role.workflow.arn
  tags       = var.tags
  type       = "STANDARD"

  # Bodies are no part of a log.
  logging_configuration {
    include_execution_data = false
    level                  = "ERROR"
    log_destination        = "${aws_cloudwatch_log_group.workflow.arn}:*"
  }

  tracing_configuration {
    enabled = true
  }

  # Step Functions tries the role's rights when it makes the state machine.
  depends_on = [aws_iam_role_policy.effect, aws_iam_role_policy.workflow]
}
