# AWS's action names, each with the call that needs it in docs/privileges.md.
data "aws_iam_policy_document" "worker" {
  dynamic "statement" {
    for_each = var.intake[*]

    content {
      sid       = "ReadIntake"
      actions   = ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"]
      resources = [statement.value.queue_arn]
    }
  }

  dynamic "statement" {
    for_each = var.intake[*]

    content {
      sid       = "DeadLetter"
      actions   = ["sqs:SendMessage"]
      resources = [statement.value.dead_letter_queue_arn]
    }
  }

  # What the code does with events is its caller's to say.
  dynamic "statement" {
    for_each = var.rights

    content {
      sid       = statement.value.sid
      actions   = statement.value.actions
      resources = statement.value.resources
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
    resources = ["${aws_cloudwatch_log_group.worker.arn}:*"]
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

resource "aws_iam_role" "worker" {
  assume_role_policy   = data.aws_iam_policy_document.assume.json
  name                 = var.name
  permissions_boundary = var.function.permissions_boundary
  tags                 = var.tags
}

resource "aws_iam_role_policy" "worker" {
  name   = "consume"
  policy = data.aws_iam_policy_document.worker.json
  role   = aws_iam_role.worker.name
}

# What the caller's own code needs, apart from what the consumer needs.
resource "aws_iam_role_policy" "additional" {
  count = length(var.function.policy_documents)

  name   = "additional-${count.index}"
  policy = var.function.policy_documents[count.index]
  role   = aws_iam_role.worker.name
}
