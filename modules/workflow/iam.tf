# AWS's action names, each with the state that needs it in docs/privileges.md.
data "aws_iam_policy_document" "workflow" {
  dynamic "statement" {
    for_each = var.guard == "function" || var.effect.function != null ? [1] : []

    content {
      sid       = "Invoke"
      actions   = ["lambda:InvokeFunction"]
      resources = concat(module.guard[*].function_arn, var.effect.function[*].arn)
    }
  }

  statement {
    sid       = "Claim"
    actions   = concat(["dynamodb:UpdateItem"], var.guard == "direct" ? ["dynamodb:GetItem"] : [])
    resources = [aws_dynamodb_table.idempotency.arn]
  }

  statement {
    sid       = "DeadLetter"
    actions   = ["sqs:SendMessage"]
    resources = [module.queue.dead_letter_queue_arn]
  }

  dynamic "statement" {
    for_each = var.encryption.kms_key_arn[*]

    content {
      sid       = "UseKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }

  # CloudWatch's log deliveries have no resources to name, nor has X-Ray.
  # https://docs.aws.amazon.com/step-functions/latest/dg/cw-logs.html, …/dg/concepts-xray-tracing.html
  statement {
    sid = "Log"
    actions = [
      "logs:CreateLogDelivery",
      "logs:DeleteLogDelivery",
      "logs:DescribeLogGroups",
      "logs:DescribeResourcePolicies",
      "logs:GetLogDelivery",
      "logs:ListLogDeliveries",
      "logs:PutResourcePolicy",
      "logs:UpdateLogDelivery",
    ]
    resources = ["*"]
  }

  statement {
    sid       = "Trace"
    actions   = ["xray:GetSamplingRules", "xray:GetSamplingTargets", "xray:PutTelemetryRecords", "xray:PutTraceSegments"]
    resources = ["*"]
  }
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      identifiers = ["states.amazonaws.com"]
      type        = "Service"
    }

    # Not the state machine's ARN: that needs the role first.
    condition {
      test     = "StringEquals"
      values   = [split(":", aws_dynamodb_table.idempotency.arn)[4]]
      variable = "aws:SourceAccount"
    }
  }
}

resource "aws_iam_role" "workflow" {
  assume_role_policy   = data.aws_iam_policy_document.assume.json
  name                 = "${var.name}-workflow"
  permissions_boundary = var.function.permissions_boundary
  tags                 = var.tags
}

resource "aws_iam_role_policy" "workflow" {
  name   = "run"
  policy = data.aws_iam_policy_document.workflow.json
  role   = aws_iam_role.workflow.name
}

# What a fragment's states need.
resource "aws_iam_role_policy" "effect" {
  count = length(var.effect.policy_documents)

  name   = "effect-${count.index}"
  policy = var.effect.policy_documents[count.index]
  role   = aws_iam_role.workflow.name
}
