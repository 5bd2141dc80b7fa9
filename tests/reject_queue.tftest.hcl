# What modules/queue refuses, used alone: as tests/reject.tftest.hcl for the root module.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  name = "orders"
}

# name is "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", but must be 1 to 71 letters, digits, - and _: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-dlq.fifo must fit SQS's 80 characters.
run "reject_queue_name_too_long_for_the_dead_letter_queue" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }

  expect_failures = [var.name]
}

# kms_key_arn is "alias/aws/sqs", but must be the ARN of a KMS key, no alias: the alias/aws/… keys cannot be opened to SNS, EventBridge or S3.
run "reject_queue_with_a_kms_alias" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    kms_key_arn = "alias/aws/sqs"
  }

  expect_failures = [var.kms_key_arn]
}

# max_receive_count is 2, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive.
run "reject_queue_with_a_max_receive_count_of_2" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    max_receive_count = 2
  }

  expect_failures = [var.max_receive_count]
}

# max_receive_count (480) x visibility_timeout_seconds (720) must be below retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower one of the two, or raise retention_days.
run "reject_queue_whose_receives_outlast_the_retention" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    max_receive_count          = 480
    visibility_timeout_seconds = 720
  }

  expect_failures = [var.max_receive_count]
}

# retention_days is 0.0001, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_queue_with_a_retention_below_a_minute" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    retention_days = 0.0001
  }

  expect_failures = [var.retention_days]
}

# visibility_timeout_seconds is 43201, but must be a whole number from 0 to 43200 (12 hours).
run "reject_queue_with_a_visibility_above_12_hours" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    visibility_timeout_seconds = 43201
  }

  expect_failures = [var.visibility_timeout_seconds]
}

# dead_letter_retention_days is 4, not above retention_days (4): a standard queue counts from the first send in the dead-letter queue too, so a late failure would be lost at once. Raise it, or lower retention_days.
run "reject_queue_with_a_dead_letter_retention_not_above_its_own" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    dead_letter_retention_days = 4
  }

  expect_failures = [var.dead_letter_retention_days]
}

# dead_letter_retention_days is 15, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_queue_with_a_dead_letter_retention_of_15_days" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    dead_letter_retention_days = 15
  }

  expect_failures = [var.dead_letter_retention_days]
}

# producers names the services "*", but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com.
run "reject_queue_for_any_service" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "*", source_arn = "arn:aws:sns:eu-central-1:111122223333:t" }]
  }

  expect_failures = [var.producers]
}

# producers has the sources arn:aws:sns:*:*:* for sns.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_queue_for_any_topic" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:*:*:*" }]
  }

  expect_failures = [var.producers]
}

# producers has the sources arn:aws:events:eu-central-1:111122223333:rule/* for events.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_queue_for_any_rule" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "events.amazonaws.com", source_arn = "arn:aws:events:eu-central-1:111122223333:rule/*" }]
  }

  expect_failures = [var.producers]
}

# producers has the sources arn:aws:s3:::* for s3.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_queue_for_any_bucket" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "s3.amazonaws.com", source_arn = "arn:aws:s3:::*" }]
  }

  expect_failures = [var.producers]
}

# producers has the source_account 111122223333, but only s3.amazonaws.com takes one, of 12 digits: the other ARNs name their account.
run "reject_queue_for_a_topic_with_a_source_account" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:t", source_account = "111122223333" }]
  }

  expect_failures = [var.producers]
}

# producers has s3.amazonaws.com and fifo is true: S3 cannot send to a FIFO queue. Leave fifo false, or let EventBridge send what S3 tells it (events.amazonaws.com).
run "reject_fifo_queue_for_a_bucket" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    fifo      = true
    producers = [{ service = "s3.amazonaws.com", source_arn = "arn:aws:s3:::uploads" }]
  }

  expect_failures = [var.producers]
}

# producers has the topics arn:aws:sns:eu-central-1:111122223333:t and fifo is true: only a FIFO topic (.fifo) can send to a FIFO queue.
run "reject_fifo_queue_for_a_standard_topic" {
  command = plan

  module {
    source = "./modules/queue"
  }

  variables {
    fifo      = true
    producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:t" }]
  }

  expect_failures = [var.producers]
}
