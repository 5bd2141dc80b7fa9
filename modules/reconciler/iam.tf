# AWS's action names, each with the call that needs it in docs/privileges.md. Batch calls have no action of their
# own: PublishBatch is checked as sns:Publish, BatchExecuteStatement's UPDATE as dynamodb:PartiQLUpdate.
data "aws_iam_policy_document" "reconciler" {
  statement {
    sid       = "FindPending"
    actions   = ["dynamodb:Query"]
    resources = ["${var.ledger_table_arn}/index/pending"]
  }

  statement {
    sid       = "ReadAndMarkLedger"
    actions   = ["dynamodb:BatchGetItem", "dynamodb:PartiQLUpdate"]
    resources = [var.ledger_table_arn]
  }

  dynamic "statement" {
    for_each = var.topic_arns

    content {
      sid       = "Publish"
      actions   = ["sns:Publish"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn[*]

    content {
      sid       = "UseKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }

  statement {
    sid       = "Log"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.reconciler.arn}:*"]
  }

  # X-Ray has no resources to name.
  statement {
    sid       = "Trace"
    actions   = ["xray:PutTelemetryRecords", "xray:PutTraceSegments"]
    resources = ["*"]
  }

  # Nor do the interfaces that Lambda makes in a VPC: they do not exist yet, and describing knows no resource.
  dynamic "statement" {
    for_each = var.function.vpc[*]

    content {
      sid = "JoinVpc"
      actions = [
        "ec2:AssignPrivateIpAddresses",
        "ec2:CreateNetworkInterface",
        "ec2:DeleteNetworkInterface",
        "ec2:DescribeNetworkInterfaces",
        "ec2:DescribeSubnets",
        "ec2:UnassignPrivateIpAddresses",
      ]
      resources = ["*"]
    }
  }
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      identifiers = ["lambda.amazonaws.com"]
      type        = "Service"
    }
  }
}

resource "aws_iam_role" "reconciler" {
  assume_role_policy   = data.aws_iam_policy_document.assume.json
  name                 = local.name
  permissions_boundary = var.function.permissions_boundary
  tags                 = var.tags
}

resource "aws_iam_role_policy" "reconciler" {
  name   = "reconcile"
  policy = data.aws_iam_policy_document.reconciler.json
  role   = aws_iam_role.reconciler.name
}

# What the caller's own topic or key needs, apart from what the reconciler needs.
resource "aws_iam_role_policy" "additional" {
  count = length(var.reconciler.policy_documents)

  name   = "additional-${count.index}"
  policy = var.reconciler.policy_documents[count.index]
  role   = aws_iam_role.reconciler.name
}

data "aws_iam_policy_document" "schedule" {
  statement {
    sid       = "Run"
    actions   = ["lambda:InvokeFunction"]
    resources = [aws_lambda_function.reconciler.arn]
  }
}

# The ledger's account is this one. Without it a schedule of any account could borrow the role.
data "aws_iam_policy_document" "assume_schedule" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      identifiers = ["scheduler.amazonaws.com"]
      type        = "Service"
    }

    condition {
      test     = "StringEquals"
      values   = [split(":", var.ledger_table_arn)[4]]
      variable = "aws:SourceAccount"
    }
  }
}

resource "aws_iam_role" "schedule" {
  assume_role_policy   = data.aws_iam_policy_document.assume_schedule.json
  name                 = "${var.consumer_name}-schedule"
  permissions_boundary = var.function.permissions_boundary
  tags                 = var.tags
}

resource "aws_iam_role_policy" "schedule" {
  name   = "run"
  policy = data.aws_iam_policy_document.schedule.json
  role   = aws_iam_role.schedule.name
}
