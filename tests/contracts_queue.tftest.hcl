# modules/queue: both queues, the redrive between them, and who may send.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

override_resource {
  target = aws_sqs_queue.dead_letter
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq"
  }
}

override_resource {
  target = aws_sqs_queue.intake
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:orders"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders"
  }
}

variables {
  name = "orders"
}

run "standard_queue" {
  module {
    source = "./modules/queue"
  }

  assert {
    condition = (
      aws_sqs_queue.intake.name == "orders" && aws_sqs_queue.dead_letter.name == "orders-dlq" &&
      !aws_sqs_queue.intake.fifo_queue && !aws_sqs_queue.dead_letter.fifo_queue
    )
    error_message = "names"
  }

  assert {
    condition = (
      aws_sqs_queue.intake.message_retention_seconds == 345600 && aws_sqs_queue.intake.visibility_timeout_seconds == 180 &&
      aws_sqs_queue.dead_letter.message_retention_seconds == 1209600
    )
    error_message = "times"
  }

  assert {
    condition = (
      aws_sqs_queue.intake.sqs_managed_sse_enabled && aws_sqs_queue.dead_letter.sqs_managed_sse_enabled &&
      aws_sqs_queue.intake.kms_master_key_id == null && aws_sqs_queue.dead_letter.kms_master_key_id == null
    )
    error_message = "without a key both are encrypted by SQS"
  }

  assert {
    condition = (
      aws_sqs_queue_redrive_policy.intake.queue_url == aws_sqs_queue.intake.url &&
      aws_sqs_queue_redrive_policy.intake.redrive_policy == jsonencode({
        deadLetterTargetArn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
        maxReceiveCount     = 5
      })
    )
    error_message = "redrive policy is ${aws_sqs_queue_redrive_policy.intake.redrive_policy}"
  }

  # A resource of its own: inline, the two queues would need each other's ARN.
  assert {
    condition = (
      aws_sqs_queue_redrive_allow_policy.dead_letter.queue_url == aws_sqs_queue.dead_letter.url &&
      aws_sqs_queue_redrive_allow_policy.dead_letter.redrive_allow_policy == jsonencode({
        redrivePermission = "byQueue"
        sourceQueueArns   = ["arn:aws:sqs:eu-central-1:111122223333:orders"]
      })
    )
    error_message = "redrive allow policy is ${aws_sqs_queue_redrive_allow_policy.dead_letter.redrive_allow_policy}"
  }

  assert {
    condition     = length(aws_sqs_queue_policy.intake) == 0
    error_message = "without producers there is no policy"
  }

  assert {
    condition = {
      dead_letter_queue_arn  = output.dead_letter_queue_arn
      dead_letter_queue_name = output.dead_letter_queue_name
      dead_letter_queue_url  = output.dead_letter_queue_url
      queue_arn              = output.queue_arn
      queue_name             = output.queue_name
      queue_url              = output.queue_url
      } == {
      dead_letter_queue_arn  = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
      dead_letter_queue_name = "orders-dlq"
      dead_letter_queue_url  = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq"
      queue_arn              = "arn:aws:sqs:eu-central-1:111122223333:orders"
      queue_name             = "orders"
      queue_url              = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders"
    }
    error_message = "outputs"
  }
}

run "fifo_queue" {
  module {
    source = "./modules/queue"
  }

  variables {
    fifo              = true
    max_receive_count = 10
  }

  assert {
    condition = (
      aws_sqs_queue.intake.name == "orders.fifo" && aws_sqs_queue.intake.fifo_queue &&
      aws_sqs_queue.dead_letter.name == "orders-dlq.fifo" && aws_sqs_queue.dead_letter.fifo_queue
    )
    error_message = "the dead-letter queue of a FIFO queue is FIFO too"
  }

  assert {
    condition     = !aws_sqs_queue.intake.content_based_deduplication
    error_message = "the senders name their messages"
  }

  assert {
    condition     = jsondecode(aws_sqs_queue_redrive_policy.intake.redrive_policy).maxReceiveCount == 10
    error_message = "max_receive_count"
  }
}

run "fifo_queue_behind_eventbridge_names_messages_by_content" {
  module {
    source = "./modules/queue"
  }

  variables {
    fifo      = true
    producers = [{ service = "events.amazonaws.com", source_arn = "arn:aws:events:eu-central-1:111122223333:rule/orders" }]
  }

  assert {
    condition     = aws_sqs_queue.intake.content_based_deduplication
    error_message = "EventBridge sends no deduplication id"
  }
}

run "one_key_for_both_queues" {
  module {
    source = "./modules/queue"
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  }

  assert {
    condition     = alltrue([for queue in [aws_sqs_queue.intake, aws_sqs_queue.dead_letter] : queue.kms_master_key_id == var.kms_key_arn])
    error_message = "both queues use the key"
  }
}

run "parts_of_a_day_become_whole_seconds" {
  module {
    source = "./modules/queue"
  }

  variables {
    retention_days             = 0.0416667 # an hour
    dead_letter_retention_days = 0.5
  }

  assert {
    condition     = aws_sqs_queue.intake.message_retention_seconds == 3600 && aws_sqs_queue.dead_letter.message_retention_seconds == 43200
    error_message = "retention is ${aws_sqs_queue.intake.message_retention_seconds} seconds"
  }
}

run "producers_get_a_policy" {
  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:orders" }]
  }

  assert {
    condition     = aws_sqs_queue_policy.intake[0].queue_url == aws_sqs_queue.intake.url
    error_message = "the policy is the intake queue's"
  }
}

# A topic of an opt-in Region sends to another Region under its own name.
run "regional_sns_is_named_in_the_policy" {
  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "sns.eu-south-2.amazonaws.com", source_arn = "arn:aws:sns:eu-south-2:111122223333:orders" }]
  }

  assert {
    condition     = one(data.aws_iam_policy_document.producers[0].statement[0].principals).identifiers == toset(["sns.eu-south-2.amazonaws.com"])
    error_message = "principal"
  }
}
