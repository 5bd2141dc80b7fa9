locals {
  # false counts as set beside a KMS key, so null.
  managed_encryption = var.kms_key_arn == null ? true : null
  suffix             = var.fifo ? ".fifo" : ""
}

resource "aws_sqs_queue" "intake" {
  # EventBridge names no deduplication id, and sends to no FIFO queue that needs one.
  content_based_deduplication = var.fifo && contains(var.producers[*].service, "events.amazonaws.com")
  fifo_queue                  = var.fifo
  kms_master_key_id           = var.kms_key_arn
  message_retention_seconds   = floor(var.retention_days * 86400 + 0.5)
  name                        = "${var.name}${local.suffix}"
  sqs_managed_sse_enabled     = local.managed_encryption
  tags                        = var.tags
  visibility_timeout_seconds  = var.visibility_timeout_seconds
}

# A queue and its dead-letter queue must be of one kind.
resource "aws_sqs_queue" "dead_letter" {
  fifo_queue                = var.fifo
  kms_master_key_id         = var.kms_key_arn
  message_retention_seconds = floor(var.dead_letter_retention_days * 86400 + 0.5)
  name                      = "${var.name}-dlq${local.suffix}"
  sqs_managed_sse_enabled   = local.managed_encryption
  tags                      = var.tags
}

# Both sides of the redrive are resources of their own: inline they would refer to each other.
resource "aws_sqs_queue_redrive_policy" "intake" {
  queue_url = aws_sqs_queue.intake.url
  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letter.arn
    maxReceiveCount     = var.max_receive_count
  })
}

resource "aws_sqs_queue_redrive_allow_policy" "dead_letter" {
  queue_url = aws_sqs_queue.dead_letter.url
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [aws_sqs_queue.intake.arn]
  })
}

data "aws_iam_policy_document" "producers" {
  count = length(var.producers) > 0 ? 1 : 0

  dynamic "statement" {
    for_each = var.producers

    content {
      actions   = ["sqs:SendMessage"]
      resources = [aws_sqs_queue.intake.arn]

      principals {
        identifiers = [statement.value.service]
        type        = "Service"
      }

      condition {
        test     = "ArnEquals"
        values   = [statement.value.source_arn]
        variable = "aws:SourceArn"
      }

      # A bucket's ARN names no account: whoever takes a deleted bucket's name could send.
      dynamic "condition" {
        for_each = statement.value.service == "s3.amazonaws.com" ? [1] : []

        content {
          test     = "StringEquals"
          values   = [coalesce(statement.value.source_account, split(":", aws_sqs_queue.intake.arn)[4])]
          variable = "aws:SourceAccount"
        }
      }
    }
  }
}

resource "aws_sqs_queue_policy" "intake" {
  count = length(var.producers) > 0 ? 1 : 0

  policy    = data.aws_iam_policy_document.producers[0].json
  queue_url = aws_sqs_queue.intake.url
}
