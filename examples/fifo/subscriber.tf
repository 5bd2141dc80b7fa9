# Another team's queue that hears of each change, account by account in order, which only a FIFO queue keeps. A
# notification can come twice, so it is read by event_id.
resource "aws_sqs_queue" "subscriber" {
  fifo_queue                = true
  message_retention_seconds = 14 * 86400
  name                      = "accounts-subscriber.fifo"
  sqs_managed_sse_enabled   = true
}

data "aws_iam_policy_document" "subscriber" {
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [aws_sqs_queue.subscriber.arn]

    principals {
      identifiers = ["sns.amazonaws.com"]
      type        = "Service"
    }

    condition {
      test     = "ArnEquals"
      values   = [module.accounts.topic_arn]
      variable = "aws:SourceArn"
    }
  }
}

resource "aws_sqs_queue_policy" "subscriber" {
  policy    = data.aws_iam_policy_document.subscriber.json
  queue_url = aws_sqs_queue.subscriber.url
}

# Raw: the subscriber gets the message itself and event_id as a message attribute.
resource "aws_sns_topic_subscription" "subscriber" {
  endpoint             = aws_sqs_queue.subscriber.arn
  protocol             = "sqs"
  raw_message_delivery = true
  topic_arn            = module.accounts.topic_arn

  depends_on = [aws_sqs_queue_policy.subscriber]
}
