locals {
  # AWS's action names, each with the call that needs it in docs/privileges.md. Batch calls have no action of their
  # own: PublishBatch is checked as sns:Publish, BatchExecuteStatement's UPDATE as dynamodb:PartiQLUpdate.
  rights = concat(
    [
      {
        sid       = "FindPending"
        actions   = ["dynamodb:Query"]
        resources = ["${var.ledger_table_arn}/index/pending"]
      },
      {
        sid       = "ReadAndMarkLedger"
        actions   = ["dynamodb:BatchGetItem", "dynamodb:PartiQLUpdate"]
        resources = [var.ledger_table_arn]
      },
    ],
    [for arn in var.topic_arns : { sid = "Publish", actions = ["sns:Publish"], resources = [arn] }],
  )
}

data "aws_iam_policy_document" "schedule" {
  statement {
    sid       = "Run"
    actions   = ["lambda:InvokeFunction"]
    resources = [module.function.function_arn]
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
