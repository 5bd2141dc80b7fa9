# An execution that is stopped by hand, or that ends at an error that no state can catch (States.Runtime), sends no
# dead letter. Its message is gone by then, so EventBridge puts what it says of the end into the dead-letter queue.
# https://docs.aws.amazon.com/step-functions/latest/dg/eventbridge-integration.html
resource "aws_cloudwatch_event_rule" "failure" {
  description = "Executions of ${var.name} that ended without a dead letter of their own."
  name        = "${var.name}-failures"
  tags        = var.tags

  event_pattern = jsonencode({
    source      = ["aws.states"]
    detail-type = ["Step Functions Execution Status Change"]
    detail = {
      stateMachineArn = [aws_sfn_state_machine.workflow.arn]
      "$or" = [
        { status = ["ABORTED", "TIMED_OUT"] },
        { status = ["FAILED"], error = [null, { exists = false }, { anything-but = { prefix = "IdempotentConsumer." } }] },
      ]
    }
  })
}

resource "aws_cloudwatch_event_target" "failure" {
  arn  = module.queue.dead_letter_queue_arn
  rule = aws_cloudwatch_event_rule.failure.name

  depends_on = [aws_sqs_queue_policy.dead_letter]
}

data "aws_iam_policy_document" "dead_letter" {
  statement {
    actions   = ["sqs:SendMessage"]
    resources = [module.queue.dead_letter_queue_arn]

    principals {
      identifiers = ["events.amazonaws.com"]
      type        = "Service"
    }

    condition {
      test     = "ArnEquals"
      values   = [aws_cloudwatch_event_rule.failure.arn]
      variable = "aws:SourceArn"
    }
  }
}

resource "aws_sqs_queue_policy" "dead_letter" {
  policy    = data.aws_iam_policy_document.dead_letter.json
  queue_url = module.queue.dead_letter_queue_url
}
