# Each run is one input that the root module refuses at plan; the comment above it is what the user is told.
# Terraform tells a test only that it was refused: tests/plan/test_refusals.py compares the messages.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  business_table_name = "order_records"
  name                = "orders"
}

# --- The name, from which all others are made.

# name is "", but must be 1 to 50 letters, digits, - and _, beginning with a letter or digit: names such as -worker and -dlq.fifo must fit Lambda's 64 and SQS's 80 characters.
run "reject_name_blank" {
  command = plan

  variables {
    name = ""
  }

  expect_failures = [var.name]
}

# name is "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", but must be 1 to 50 letters, digits, - and _, beginning with a letter or digit: names such as aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-worker and aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-dlq.fifo must fit Lambda's 64 and SQS's 80 characters.
run "reject_name_of_51_characters" {
  command = plan

  variables {
    name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }

  expect_failures = [var.name]
}

# name is "orders.fifo", but must be 1 to 50 letters, digits, - and _, beginning with a letter or digit: names such as orders.fifo-worker and orders.fifo-dlq.fifo must fit Lambda's 64 and SQS's 80 characters.
run "reject_name_with_a_dot" {
  command = plan

  variables {
    name = "orders.fifo"
  }

  expect_failures = [var.name]
}

# name is "-orders", but must be 1 to 50 letters, digits, - and _, beginning with a letter or digit: names such as -orders-worker and -orders-dlq.fifo must fit Lambda's 64 and SQS's 80 characters.
run "reject_name_that_begins_with_a_dash" {
  command = plan

  variables {
    name = "-orders"
  }

  expect_failures = [var.name]
}

# --- The business table.

# business_table_name is "ab", but must be 3 to 255 letters, digits, _, - and dots.
run "reject_business_table_name_of_two_characters" {
  command = plan

  variables {
    business_table_name = "ab"
  }

  expect_failures = [var.business_table_name]
}

# business_table_name is "arn:aws:dynamodb:eu-central-1:111122223333:table/orders", but must be 3 to 255 letters, digits, _, - and dots.
run "reject_business_table_name_that_is_an_arn" {
  command = plan

  variables {
    business_table_name = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders"
  }

  expect_failures = [var.business_table_name]
}

# business_table_name is "orders-processed-events", which is the name of the ledger table: one transaction cannot use a table for both. Give the business table another name.
run "reject_business_table_name_of_the_ledger" {
  command = plan

  variables {
    business_table_name = "orders-processed-events"
  }

  expect_failures = [var.business_table_name]
}

# business_table.hash_key_type is "B", but must be S or N.
run "reject_hash_key_of_a_binary_type" {
  command = plan

  variables {
    business_table = { hash_key_type = "B" }
  }

  expect_failures = [var.business_table]
}

# business_table.range_key_type is "n", but must be S or N.
run "reject_range_key_of_a_lower_case_type" {
  command = plan

  variables {
    business_table = { range_key = "line", range_key_type = "n" }
  }

  expect_failures = [var.business_table]
}

# business_table.range_key is "id", which is business_table.hash_key too: a table has two keys or one.
run "reject_range_key_that_is_the_hash_key" {
  command = plan

  variables {
    business_table = { hash_key = "id", range_key = "id" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is " " and range_key null, but a key's name is 1 to 255 characters, not blank.
run "reject_hash_key_blank" {
  command = plan

  variables {
    business_table = { hash_key = " " }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "id" and range_key "", but a key's name is 1 to 255 characters, not blank.
run "reject_range_key_blank" {
  command = plan

  variables {
    business_table = { range_key = "" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "event_fingerprint" and range_key null, but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key.
run "reject_hash_key_that_the_consumer_writes" {
  command = plan

  variables {
    business_table = { hash_key = "event_fingerprint" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "id" and range_key "event_version", but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key.
run "reject_range_key_that_the_consumer_writes" {
  command = plan

  variables {
    business_table = { range_key = "event_version", range_key_type = "N" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "event_consumer" and range_key null, but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key.
run "reject_hash_key_that_names_the_consumer" {
  command = plan

  variables {
    business_table = { hash_key = "event_consumer" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "id" and range_key "event_consumer", but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key.
run "reject_range_key_that_names_the_consumer" {
  command = plan

  variables {
    business_table = { range_key = "event_consumer" }
  }

  expect_failures = [var.business_table]
}

# business_table.hash_key is "id" and range_key "event_committed_at", but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key.
run "reject_range_key_that_tells_when_it_was_committed" {
  command = plan

  variables {
    business_table = { range_key = "event_committed_at", range_key_type = "N" }
  }

  expect_failures = [var.business_table]
}

# business_table has the key event_id with type N (hash_key_type "N", range_key_type "S"), but the consumer writes event_id as a string: give S.
run "reject_event_id_as_a_number_key" {
  command = plan

  variables {
    business_table = { hash_key = "event_id", hash_key_type = "N" }
  }

  expect_failures = [var.business_table]
}

# --- How long events are remembered.

# ttl_window_days is 30.5, but must be a whole number of days, 1 to 3650.
run "reject_ttl_window_of_half_a_day" {
  command = plan

  variables {
    ttl_window_days = 30.5
  }

  expect_failures = [var.ttl_window_days]
}

# ttl_window_days is 3651, but must be a whole number of days, 1 to 3650.
run "reject_ttl_window_above_ten_years" {
  command = plan

  variables {
    ttl_window_days = 3651
  }

  expect_failures = [var.ttl_window_days]
}

# ttl_window_days is 17, below queue.retention_days (4) + queue.dead_letter_retention_days (14): a message could come back after its event was forgotten. Raise ttl_window_days, or lower one of the two.
run "reject_ttl_window_below_both_retentions" {
  command = plan

  variables {
    ttl_window_days = 17
  }

  expect_failures = [var.ttl_window_days]
}

# ttl_window_days is 27, below queue.retention_days (14) + queue.dead_letter_retention_days (14): a message could come back after its event was forgotten. Raise ttl_window_days, or lower one of the two.
run "reject_ttl_window_below_both_retentions_of_fifo_queues" {
  command = plan

  variables {
    queue           = { fifo = true, retention_days = 14 }
    ttl_window_days = 27
  }

  expect_failures = [var.ttl_window_days]
}

# ttl_window_days is 18, below queue.retention_days (4.5) + queue.dead_letter_retention_days (14): a message could come back after its event was forgotten. Raise ttl_window_days, or lower one of the two.
run "reject_ttl_window_below_a_retention_of_part_of_a_day" {
  command = plan

  variables {
    queue           = { retention_days = 4.5 }
    ttl_window_days = 18
  }

  expect_failures = [var.ttl_window_days]
}

# --- Batches.

# batch_size is 0, but must be a whole number from 1 to 10000.
run "reject_batch_of_none" {
  command = plan

  variables {
    batch_size = 0
  }

  expect_failures = [var.batch_size]
}

# batch_size is 10001, but must be a whole number from 1 to 10000.
run "reject_batch_of_10001" {
  command = plan

  variables {
    batch_size = 10001
    function   = { batching_window_seconds = 1, timeout_seconds = 300 }
  }

  expect_failures = [var.batch_size]
}

# batch_size is 2.5, but must be a whole number from 1 to 10000.
run "reject_batch_of_a_half" {
  command = plan

  variables {
    batch_size = 2.5
  }

  expect_failures = [var.batch_size]
}

# batch_size is 11 and function.batching_window_seconds is null: a batch of more than 10 needs a batching window of at least 1 second.
run "reject_batch_of_11_without_a_window" {
  command = plan

  variables {
    batch_size = 11
  }

  expect_failures = [var.batch_size]
}

# batch_size is 11 and function.batching_window_seconds is 0: a batch of more than 10 needs a batching window of at least 1 second.
run "reject_batch_of_11_with_a_window_of_0" {
  command = plan

  variables {
    batch_size = 11
    function   = { batching_window_seconds = 0 }
  }

  expect_failures = [var.batch_size]
}

# batch_size is 11, but with queue.fifo it is at most 10.
run "reject_fifo_batch_of_11" {
  command = plan

  variables {
    batch_size = 11
    queue      = { fifo = true }
  }

  expect_failures = [var.batch_size]
}

# batch_size is 10000 and function.timeout_seconds is 30: at 10 ms for each message, with 9 seconds kept back, the timeout must be at least 109 seconds, or messages come back unprocessed and reach the dead-letter queue.
run "reject_batch_of_10000_in_30_seconds" {
  command = plan

  variables {
    batch_size = 10000
    function   = { batching_window_seconds = 1 }
  }

  expect_failures = [var.batch_size]
}

# batch_size is 101 and function.timeout_seconds is 10: at 10 ms for each message, with 9 seconds kept back, the timeout must be at least 11 seconds, or messages come back unprocessed and reach the dead-letter queue.
run "reject_batch_of_101_in_10_seconds" {
  command = plan

  variables {
    batch_size = 101
    function   = { batching_window_seconds = 1, timeout_seconds = 10 }
  }

  expect_failures = [var.batch_size]
}

# --- The queues.

# queue.fifo is true and function.batching_window_seconds is 5: a FIFO queue takes no batching window, not even 0. Leave it null.
run "reject_fifo_with_a_window" {
  command = plan

  variables {
    function = { batching_window_seconds = 5 }
    queue    = { fifo = true }
  }

  expect_failures = [var.queue]
}

# queue.fifo is true and function.batching_window_seconds is 0: a FIFO queue takes no batching window, not even 0. Leave it null.
run "reject_fifo_with_a_window_of_0" {
  command = plan

  variables {
    function = { batching_window_seconds = 0 }
    queue    = { fifo = true }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count is 1, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive.
run "reject_max_receive_count_of_1" {
  command = plan

  variables {
    queue = { max_receive_count = 1 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count is 2, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive.
run "reject_max_receive_count_of_2" {
  command = plan

  variables {
    queue = { max_receive_count = 2 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count is 1001, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive.
run "reject_max_receive_count_of_1001" {
  command = plan

  variables {
    queue = { max_receive_count = 1001 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count is 3.5, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive.
run "reject_max_receive_count_of_a_half" {
  command = plan

  variables {
    queue = { max_receive_count = 3.5 }
  }

  expect_failures = [var.queue]
}

# queue.retention_days is 15, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_retention_of_15_days" {
  command = plan

  variables {
    queue           = { fifo = true, retention_days = 15 }
    ttl_window_days = 40
  }

  expect_failures = [var.queue]
}

# queue.retention_days is 0.0006, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_retention_below_a_minute" {
  command = plan

  variables {
    queue = { retention_days = 0.0006 }
  }

  expect_failures = [var.queue]
}

# queue.dead_letter_retention_days is 15, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_dead_letter_retention_of_15_days" {
  command = plan

  variables {
    queue = { dead_letter_retention_days = 15 }
  }

  expect_failures = [var.queue]
}

# queue.dead_letter_retention_days is 0, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days.
run "reject_dead_letter_retention_below_a_minute" {
  command = plan

  variables {
    queue = { fifo = true, dead_letter_retention_days = 0 }
  }

  expect_failures = [var.queue]
}

# queue.dead_letter_retention_days is 4, not above queue.retention_days (4): a standard queue counts from the first send in the dead-letter queue too, so a late failure would be lost at once. Raise it, or lower queue.retention_days.
run "reject_dead_letter_retention_of_the_queue_on_a_standard_queue" {
  command = plan

  variables {
    queue = { retention_days = 4, dead_letter_retention_days = 4 }
  }

  expect_failures = [var.queue]
}

# queue.visibility_timeout_seconds is 30, below function.timeout_seconds (60): a message would come back while it is still being processed. Raise it, or leave it null.
run "reject_visibility_below_the_timeout" {
  command = plan

  variables {
    function = { timeout_seconds = 60 }
    queue    = { visibility_timeout_seconds = 30 }
  }

  expect_failures = [var.queue]
}

# queue.visibility_timeout_seconds is 70, below function.timeout_seconds (60) + function.batching_window_seconds (11): a message would come back while its batch is gathered or processed. Raise it, or leave it null.
run "reject_visibility_below_timeout_and_window" {
  command = plan

  variables {
    function = { timeout_seconds = 60, batching_window_seconds = 11 }
    queue    = { visibility_timeout_seconds = 70 }
  }

  expect_failures = [var.queue]
}

# queue.visibility_timeout_seconds is 43201, but must be a whole number, at most 43200 (12 hours).
run "reject_visibility_above_12_hours" {
  command = plan

  variables {
    queue = { visibility_timeout_seconds = 43201 }
  }

  expect_failures = [var.queue]
}

# queue.visibility_timeout_seconds is 60.5, but must be a whole number, at most 43200 (12 hours).
run "reject_visibility_of_half_a_second" {
  command = plan

  variables {
    queue = { visibility_timeout_seconds = 60.5 }
  }

  expect_failures = [var.queue]
}

# queue.backoff_max_seconds is 39601, but must be a whole number from 0 to 39600 (11 hours): SQS hides a message for 12 hours at most, counted from its receive.
run "reject_backoff_above_11_hours" {
  command = plan

  variables {
    queue = { backoff_max_seconds = 39601 }
  }

  expect_failures = [var.queue]
}

# queue.backoff_max_seconds is -1, but must be a whole number from 0 to 39600 (11 hours): SQS hides a message for 12 hours at most, counted from its receive.
run "reject_backoff_below_0" {
  command = plan

  variables {
    queue = { backoff_max_seconds = -1 }
  }

  expect_failures = [var.queue]
}

# queue.backoff_max_seconds is 60.5, but must be a whole number from 0 to 39600 (11 hours): SQS hides a message for 12 hours at most, counted from its receive.
run "reject_backoff_of_half_a_second" {
  command = plan

  variables {
    queue = { backoff_max_seconds = 60.5 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (10) x the larger of queue.visibility_timeout_seconds (180) and queue.backoff_max_seconds (34560) must be below queue.retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the larger of the two, or raise queue.retention_days.
run "reject_backoff_that_outlasts_the_retention" {
  command = plan

  variables {
    queue = { backoff_max_seconds = 34560, fifo = true }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (480) x the larger of queue.visibility_timeout_seconds (720) and queue.backoff_max_seconds (null) must be below queue.retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the larger of the two, or raise queue.retention_days.
run "reject_receives_that_outlast_the_retention" {
  command = plan

  variables {
    function = { timeout_seconds = 120 }
    queue    = { max_receive_count = 480 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (5) x the larger of queue.visibility_timeout_seconds (200) and queue.backoff_max_seconds (100) must be below queue.retention_days (0.0114, in seconds 985): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the larger of the two, or raise queue.retention_days.
run "reject_visibility_that_outlasts_a_short_retention" {
  command = plan

  variables {
    function = { batching_window_seconds = 20 }
    queue    = { backoff_max_seconds = 100, retention_days = 0.0114 }
  }

  expect_failures = [var.queue]
}

# --- Who may send.

# queue.producers names the services "lambda.amazonaws.com", but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com.
run "reject_producer_of_an_unknown_service" {
  command = plan

  variables {
    queue = { producers = [{ service = "lambda.amazonaws.com", source_arn = "arn:aws:lambda:eu-central-1:111122223333:function:f" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers names the services "*", but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com.
run "reject_producer_of_any_service" {
  command = plan

  variables {
    queue = { producers = [{ service = "*", source_arn = "arn:aws:sns:eu-central-1:111122223333:t" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers names the services "sns.eu.amazonaws.com", but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com.
run "reject_producer_sns_of_no_region" {
  command = plan

  variables {
    queue = { producers = [{ service = "sns.eu.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:t" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers names the services "events.eu-south-2.amazonaws.com", but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com.
run "reject_producer_events_of_a_region" {
  command = plan

  variables {
    queue = { producers = [{ service = "events.eu-south-2.amazonaws.com", source_arn = "arn:aws:events:eu-south-2:111122223333:rule/r" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the sources arn:aws:s3:::uploads for sns.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_producer_sns_with_a_bucket" {
  command = plan

  variables {
    queue = { producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:s3:::uploads" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the sources arn:aws:events:eu-central-1:111122223333:event-bus/default for events.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_producer_events_with_a_bus" {
  command = plan

  variables {
    queue = { producers = [{ service = "events.amazonaws.com", source_arn = "arn:aws:events:eu-central-1:111122223333:event-bus/default" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the sources arn:aws:events:eu-central-1:111122223333:rule/* for events.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_producer_events_with_a_wildcard" {
  command = plan

  variables {
    queue = { producers = [{ service = "events.amazonaws.com", source_arn = "arn:aws:events:eu-central-1:111122223333:rule/*" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the sources arn:aws:sns:*:*:* for sns.eu-south-2.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_producer_sns_of_a_region_with_a_wildcard" {
  command = plan

  variables {
    queue = { producers = [{ service = "sns.eu-south-2.amazonaws.com", source_arn = "arn:aws:sns:*:*:*" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the sources arn:aws:s3:::* for s3.amazonaws.com, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards.
run "reject_producer_s3_with_a_wildcard" {
  command = plan

  variables {
    queue = { producers = [{ service = "s3.amazonaws.com", source_arn = "arn:aws:s3:::*" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the source_account 111122223333, but only s3.amazonaws.com takes one, of 12 digits: the other ARNs name their account.
run "reject_producer_sns_with_a_source_account" {
  command = plan

  variables {
    queue = { producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:t", source_account = "111122223333" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the source_account me, but only s3.amazonaws.com takes one, of 12 digits: the other ARNs name their account.
run "reject_producer_s3_with_a_source_account_of_letters" {
  command = plan

  variables {
    queue = { producers = [{ service = "s3.amazonaws.com", source_arn = "arn:aws:s3:::uploads", source_account = "me" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has s3.amazonaws.com and queue.fifo is true: S3 cannot send to a FIFO queue. Leave queue.fifo false, or let EventBridge send what S3 tells it (events.amazonaws.com).
run "reject_fifo_with_s3_as_producer" {
  command = plan

  variables {
    queue = { fifo = true, producers = [{ service = "s3.amazonaws.com", source_arn = "arn:aws:s3:::uploads" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the topics arn:aws:sns:eu-central-1:111122223333:t and queue.fifo is true: only a FIFO topic (.fifo) can send to a FIFO queue.
run "reject_fifo_with_a_standard_topic_as_producer" {
  command = plan

  variables {
    queue = { fifo = true, producers = [{ service = "sns.amazonaws.com", source_arn = "arn:aws:sns:eu-central-1:111122223333:t" }] }
  }

  expect_failures = [var.queue]
}

# queue.producers has the topics arn:aws:sns:eu-south-2:111122223333:t and queue.fifo is true: only a FIFO topic (.fifo) can send to a FIFO queue.
run "reject_fifo_with_a_standard_topic_of_another_region_as_producer" {
  command = plan

  variables {
    queue = { fifo = true, producers = [{ service = "sns.eu-south-2.amazonaws.com", source_arn = "arn:aws:sns:eu-south-2:111122223333:t" }] }
  }

  expect_failures = [var.queue]
}

# --- The function.

# function.architecture is "arm", but must be arm64 or x86_64.
run "reject_architecture_unknown" {
  command = plan

  variables {
    function = { architecture = "arm" }
  }

  expect_failures = [var.function]
}

# function.batching_window_seconds is 301, but must be a whole number from 0 to 300.
run "reject_batching_window_of_301_seconds" {
  command = plan

  variables {
    function = { batching_window_seconds = 301 }
  }

  expect_failures = [var.function]
}

# function.batching_window_seconds is -1, but must be a whole number from 0 to 300.
run "reject_batching_window_below_0" {
  command = plan

  variables {
    function = { batching_window_seconds = -1 }
  }

  expect_failures = [var.function]
}

# function.environment has LEDGER_TABLE, set by this module or by Lambda itself: choose other names.
run "reject_environment_that_the_module_sets" {
  command = plan

  variables {
    function = { environment = { LEDGER_TABLE = "mine" } }
  }

  expect_failures = [var.function]
}

# function.environment has EVENT_ID, set by this module or by Lambda itself: choose other names.
run "reject_environment_that_the_module_may_set" {
  command = plan

  variables {
    function = { environment = { EVENT_ID = "mine" } }
  }

  expect_failures = [var.function]
}

# function.environment has AWS_REGION, set by this module or by Lambda itself: choose other names.
run "reject_environment_that_lambda_sets" {
  command = plan

  variables {
    function = { environment = { AWS_REGION = "eu-central-1" } }
  }

  expect_failures = [var.function]
}

# function.environment has "AWS_LAMBDA_EXEC_WRAPPER", but a name is a letter, then letters, digits and _, and does not begin with AWS_LAMBDA_, which is Lambda's own.
run "reject_environment_that_belongs_to_lambda" {
  command = plan

  variables {
    function = { environment = { AWS_LAMBDA_EXEC_WRAPPER = "/opt/x" } }
  }

  expect_failures = [var.function]
}

# function.environment has "MY-NAME", but a name is a letter, then letters, digits and _, and does not begin with AWS_LAMBDA_, which is Lambda's own.
run "reject_environment_with_a_dash" {
  command = plan

  variables {
    function = { environment = { "MY-NAME" = "1" } }
  }

  expect_failures = [var.function]
}

# function.handler is "handler", but must be module.function, at most 128 letters, digits, _, - and /.
run "reject_handler_without_a_module" {
  command = plan

  variables {
    function = { handler = "handler", package = "./main.tf" } # any file
  }

  expect_failures = [var.function]
}

# function.handler is "mine.handler" and function.package is null: the zip that comes with the module has no handler of that name. Give the path of your own zip as function.package, or leave the handler null.
run "reject_handler_of_ones_own_without_a_package" {
  command = plan

  variables {
    function = { handler = "mine.handler" }
  }

  expect_failures = [var.function]
}

# function.layers is ["arn:aws:lambda:eu-central-1:111122223333:layer:l:0","arn:aws:lambda:eu-central-1:111122223333:layer:l:1","arn:aws:lambda:eu-central-1:111122223333:layer:l:2","arn:aws:lambda:eu-central-1:111122223333:layer:l:3","arn:aws:lambda:eu-central-1:111122223333:layer:l:4","arn:aws:lambda:eu-central-1:111122223333:layer:l:5"], but must be at most 5 ARNs of layer versions: arn:<partition>:lambda:<region>:<account>:layer:<name>:<version>.
run "reject_layers_more_than_5" {
  command = plan

  variables {
    function = { layers = [for n in range(6) : "arn:aws:lambda:eu-central-1:111122223333:layer:l:${n}"] }
  }

  expect_failures = [var.function]
}

# function.layers is ["arn:aws:lambda:eu-central-1:111122223333:layer:l"], but must be at most 5 ARNs of layer versions: arn:<partition>:lambda:<region>:<account>:layer:<name>:<version>.
run "reject_layer_without_a_version" {
  command = plan

  variables {
    function = { layers = ["arn:aws:lambda:eu-central-1:111122223333:layer:l"] }
  }

  expect_failures = [var.function]
}

# function.maximum_concurrency is 1, but must be a whole number from 2 to 1000 (AWS takes no 1); null is without a limit.
run "reject_maximum_concurrency_of_1" {
  command = plan

  variables {
    function = { maximum_concurrency = 1 }
  }

  expect_failures = [var.function]
}

# function.maximum_concurrency is 1001, but must be a whole number from 2 to 1000 (AWS takes no 1); null is without a limit.
run "reject_maximum_concurrency_of_1001" {
  command = plan

  variables {
    function = { maximum_concurrency = 1001 }
  }

  expect_failures = [var.function]
}

# function.memory_mb is 127, but must be a whole number from 128 to 10240.
run "reject_memory_of_127_mb" {
  command = plan

  variables {
    function = { memory_mb = 127 }
  }

  expect_failures = [var.function]
}

# function.memory_mb is 10241, but must be a whole number from 128 to 10240.
run "reject_memory_of_10241_mb" {
  command = plan

  variables {
    function = { memory_mb = 10241 }
  }

  expect_failures = [var.function]
}

# function.package is "./nowhere.zip", and there is no such file: give the path of the function's zip, or null for the one that comes with the module.
run "reject_package_that_is_not_there" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./nowhere.zip" }
  }

  expect_failures = [var.function]
}

# function.package is "./modules", and there is no such file: give the path of the function's zip, or null for the one that comes with the module.
run "reject_package_that_is_a_folder" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./modules" }
  }

  expect_failures = [var.function]
}

# function.package is "./main.tf" and function.handler is null: name the handler in your zip, as module.function.
run "reject_package_without_a_handler" {
  command = plan

  variables {
    function = { package = "./main.tf" } # any file
  }

  expect_failures = [var.function]
}

# function.permissions_boundary is "boundary", but must be the ARN of an IAM policy.
run "reject_permissions_boundary_that_is_a_name" {
  command = plan

  variables {
    function = { permissions_boundary = "boundary" }
  }

  expect_failures = [var.function]
}

# function.policy_documents has no IAM policy at the positions 0: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives.
run "reject_policy_document_that_is_no_json" {
  command = plan

  variables {
    function = { policy_documents = ["s3:GetObject"] }
  }

  expect_failures = [var.function]
}

# function.reserved_concurrency is 4 and function.maximum_concurrency is 5: it must be a whole number, at least maximum_concurrency (which must be set), or the poller is throttled and messages reach the dead-letter queue without having run.
run "reject_reserved_concurrency_below_the_maximum" {
  command = plan

  variables {
    function = { reserved_concurrency = 4, maximum_concurrency = 5 }
  }

  expect_failures = [var.function]
}

# function.reserved_concurrency is 5 and function.maximum_concurrency is null: it must be a whole number, at least maximum_concurrency (which must be set), or the poller is throttled and messages reach the dead-letter queue without having run.
run "reject_reserved_concurrency_without_a_maximum" {
  command = plan

  variables {
    function = { reserved_concurrency = 5 }
  }

  expect_failures = [var.function]
}

# function.runtime is "python3.10", but must be python3.11 or later.
run "reject_runtime_of_python_3_10" {
  command = plan

  variables {
    function = { runtime = "python3.10" }
  }

  expect_failures = [var.function]
}

# function.runtime is "nodejs22.x", but must be python3.11 or later.
run "reject_runtime_of_another_language" {
  command = plan

  variables {
    function = { runtime = "nodejs22.x" }
  }

  expect_failures = [var.function]
}

# function.snap_start is true and function.runtime is "python3.11": SnapStart needs python3.12 or later.
run "reject_snap_start_with_python_3_11" {
  command = plan

  variables {
    function = { runtime = "python3.11", snap_start = true }
  }

  expect_failures = [var.function]
}

# function.table_arns is ["stock"], but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>.
run "reject_table_that_is_a_name" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["stock"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock/index/by_shelf"], but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>.
run "reject_table_that_is_an_index" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock/index/by_shelf"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock*"], but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>.
run "reject_tables_by_a_wildcard" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock*"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:sqs:eu-central-1:111122223333:stock"], but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>.
run "reject_table_that_is_a_queue" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws:sqs:eu-central-1:111122223333:stock"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is [null], but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>.
run "reject_table_that_is_null" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = [null] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock","arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events"], with a consumer's ledger: a plan that could write there could undo what the ledger promises. Leave the ledger out.
run "reject_table_that_is_the_ledger" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock", "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:dynamodb:eu-central-1:111122223333:table/invoices-processed-events"], with a consumer's ledger: a plan that could write there could undo what the ledger promises. Leave the ledger out.
run "reject_table_that_is_another_consumer_s_ledger" {
  command = plan

  variables {
    function = { handler = "mine.handler", package = "./main.tf", table_arns = ["arn:aws:dynamodb:eu-central-1:111122223333:table/invoices-processed-events"] } # any file
  }

  expect_failures = [var.function]
}

# function.table_arns is ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock"] and function.package is null: the shipped plan writes to the business table alone. Give the path of your own zip as function.package.
run "reject_tables_without_code_of_ones_own" {
  command = plan

  variables {
    function = { table_arns = ["arn:aws:dynamodb:eu-central-1:111122223333:table/stock"] }
  }

  expect_failures = [var.function]
}

# function.timeout_seconds is 9, but must be a whole number from 10 to 900: each call to AWS may take 7 seconds, and a step starts only while there is time for it.
run "reject_timeout_of_9_seconds" {
  command = plan

  variables {
    function = { timeout_seconds = 9 }
  }

  expect_failures = [var.function]
}

# function.timeout_seconds is 901, but must be a whole number from 10 to 900: each call to AWS may take 7 seconds, and a step starts only while there is time for it.
run "reject_timeout_of_901_seconds" {
  command = plan

  variables {
    function = { timeout_seconds = 901 }
  }

  expect_failures = [var.function]
}

# function.timeout_seconds is 30.5, but must be a whole number from 10 to 900: each call to AWS may take 7 seconds, and a step starts only while there is time for it.
run "reject_timeout_of_half_a_second" {
  command = plan

  variables {
    function = { timeout_seconds = 30.5 }
  }

  expect_failures = [var.function]
}

# function.vpc has 0 subnet_ids and 1 security_group_ids, but needs at least one of each; null is no VPC.
run "reject_vpc_without_subnets" {
  command = plan

  variables {
    function = { vpc = { security_group_ids = ["sg-1"], subnet_ids = [] } }
  }

  expect_failures = [var.function]
}

# --- The reconciler.

# reconciler.interval_minutes is 0, but must be a whole number from 1 to 1440 (a day).
run "reject_reconciler_without_a_pause" {
  command = plan

  variables {
    reconciler = { interval_minutes = 0 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.interval_minutes is 1441, but must be a whole number from 1 to 1440 (a day).
run "reject_reconciler_less_than_once_a_day" {
  command = plan

  variables {
    reconciler = { interval_minutes = 1441 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.interval_minutes is 2.5, but must be a whole number from 1 to 1440 (a day).
run "reject_reconciler_interval_of_a_half" {
  command = plan

  variables {
    reconciler = { interval_minutes = 2.5 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.memory_mb is 255, but must be a whole number from 256 to 10240: a run holds pages of 50 rows of up to 400 KB.
run "reject_reconciler_memory_of_255_mb" {
  command = plan

  variables {
    reconciler = { memory_mb = 255 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.policy_documents has no IAM policy at the positions 0: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives.
run "reject_reconciler_policy_document_that_is_no_json" {
  command = plan

  variables {
    reconciler = { policy_documents = ["kms:Decrypt"] }
  }

  expect_failures = [var.reconciler]
}

# reconciler.threshold_seconds is 900.5, but must be a whole number, at most 1209600 (14 days): by then no queue holds the message any more.
run "reject_reconciler_threshold_of_half_a_second" {
  command = plan

  variables {
    reconciler = { threshold_seconds = 900.5 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.threshold_seconds is 1209601, but must be a whole number, at most 1209600 (14 days): by then no queue holds the message any more.
run "reject_reconciler_threshold_above_14_days" {
  command = plan

  variables {
    reconciler = { threshold_seconds = 1209601 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.threshold_seconds is 179, below the queue's visibility timeout (180): the event of a message that is in work would be announced twice. Raise it, or leave it null.
run "reject_reconciler_threshold_below_the_visibility" {
  command = plan

  variables {
    reconciler = { threshold_seconds = 179 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.timeout_seconds is 29, but must be a whole number from 30 to 900: the last 9 seconds of a run begin nothing, and reading what is pending takes a part of the rest.
run "reject_reconciler_timeout_of_29_seconds" {
  command = plan

  variables {
    reconciler = { timeout_seconds = 29 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.timeout_seconds is 901, but must be a whole number from 30 to 900: the last 9 seconds of a run begin nothing, and reading what is pending takes a part of the rest.
run "reject_reconciler_timeout_of_901_seconds" {
  command = plan

  variables {
    reconciler = { interval_minutes = 60, timeout_seconds = 901 }
  }

  expect_failures = [var.reconciler]
}

# reconciler.timeout_seconds is 301, above reconciler.interval_minutes (5, in seconds 300): two runs would overlap and announce the same events twice. Lower the first, or raise the second.
run "reject_reconciler_timeout_above_the_interval" {
  command = plan

  variables {
    reconciler = { timeout_seconds = 301 }
  }

  expect_failures = [var.reconciler]
}

# function.environment has RECONCILER_THRESHOLD_SECONDS, set by this module or by Lambda itself: choose other names.
run "reject_environment_that_the_module_sets_for_the_reconciler" {
  command = plan

  variables {
    function = { environment = { RECONCILER_THRESHOLD_SECONDS = "1" } }
  }

  expect_failures = [var.function]
}

# --- The event.

# event.envelope is "auto", but must be raw, sns, eventbridge or s3.
run "reject_envelope_unknown" {
  command = plan

  variables {
    event = { envelope = "auto" }
  }

  expect_failures = [var.event]
}

# event.write_mode is "replace", but must be insert, upsert or newer.
run "reject_write_mode_unknown" {
  command = plan

  variables {
    event = { write_mode = "replace" }
  }

  expect_failures = [var.event]
}

# event.version is null and event.write_mode is "newer": without a version nothing tells which event is newer. Name the path of one, or choose insert or upsert.
run "reject_newer_without_a_version" {
  command = plan

  variables {
    event = { write_mode = "newer" }
  }

  expect_failures = [var.event]
}

# event.version is "revision" and event.write_mode is "insert": a version is used with newer only, and would be ignored. Choose newer, or leave the version out.
run "reject_version_without_newer" {
  command = plan

  variables {
    event = { version = "revision" }
  }

  expect_failures = [var.event]
}

# event has a blank path (fingerprint null, id "", item "@", version null): a blank is no JMESPath. Leave it out for the default.
run "reject_id_path_blank" {
  command = plan

  variables {
    event = { id = "" }
  }

  expect_failures = [var.event]
}

# event has a blank path (fingerprint null, id null, item " ", version null): a blank is no JMESPath. Leave it out for the default.
run "reject_item_path_blank" {
  command = plan

  variables {
    event = { item = " " }
  }

  expect_failures = [var.event]
}

# event has a blank path (fingerprint "", id null, item "@", version null): a blank is no JMESPath. Leave it out for the default.
run "reject_fingerprint_path_blank" {
  command = plan

  variables {
    event = { fingerprint = "" }
  }

  expect_failures = [var.event]
}

# event has a blank path (fingerprint null, id null, item "@", version " "): a blank is no JMESPath. Leave it out for the default.
run "reject_version_path_blank" {
  command = plan

  variables {
    event = { version = " ", write_mode = "newer" }
  }

  expect_failures = [var.event]
}

# event.envelope is "s3", event.item is "@" and business_table.hash_key is "id": a record of S3 has no id, so each event would be rejected. Set event.item to build the row, or business_table.hash_key to what the record has.
run "reject_s3_records_as_rows_with_the_key_id" {
  command = plan

  variables {
    event = { envelope = "s3" }
  }

  expect_failures = [var.event]
}

# event.envelope is "s3" and queue.fifo is true: S3 cannot send to a FIFO queue. Leave queue.fifo false, or let EventBridge send what S3 tells it (event.envelope = "eventbridge").
run "reject_s3_records_from_a_fifo_queue" {
  command = plan

  variables {
    event = { envelope = "s3", item = "s3.object" }
    queue = { fifo = true }
  }

  expect_failures = [var.event]
}

# --- The notification.

# notification.topic_arn is "arn:aws:sns:eu-central-1:111122223333:t" and notification.create_topic is true: with create_topic a topic is made and topic_arn would be ignored. Set create_topic = false to use yours.
run "reject_topic_arn_beside_a_created_topic" {
  command = plan

  variables {
    notification = { topic_arn = "arn:aws:sns:eu-central-1:111122223333:t" }
  }

  expect_failures = [var.notification]
}

# notification.topic_arn is "orders", but must be the ARN of a topic: arn:<partition>:sns:<region>:<account>:<name>.
run "reject_topic_arn_that_is_a_name" {
  command = plan

  variables {
    notification = { create_topic = false, topic_arn = "orders" }
  }

  expect_failures = [var.notification]
}

# notification.message is "", a blank: SNS refuses empty messages. Give a JMESPath; @ is the whole event.
run "reject_message_blank" {
  command = plan

  variables {
    notification = { message = "" }
  }

  expect_failures = [var.notification]
}

# notification.attributes has 10 names, but may have at most 9: event_id is the tenth, and with more than 10 a raw-delivery subscriber silently gets nothing.
run "reject_attributes_more_than_9" {
  command = plan

  variables {
    notification = { attributes = { for n in range(10) : "name_${n}" => "id" } }
  }

  expect_failures = [var.notification]
}

# notification.attributes has "event_id", but event_id is set by the consumer: choose another name.
run "reject_attribute_event_id" {
  command = plan

  variables {
    notification = { attributes = { event_id = "id" } }
  }

  expect_failures = [var.notification]
}

# notification.attributes has "AWS.kind", but a name is 1 to 256 letters, digits, _, - and single dots inside, and does not begin with AWS. or Amazon.
run "reject_attribute_that_begins_with_aws" {
  command = plan

  variables {
    notification = { attributes = { "AWS.kind" = "kind" } }
  }

  expect_failures = [var.notification]
}

# notification.attributes has "amazon.kind", but a name is 1 to 256 letters, digits, _, - and single dots inside, and does not begin with AWS. or Amazon.
run "reject_attribute_that_begins_with_amazon" {
  command = plan

  variables {
    notification = { attributes = { "amazon.kind" = "kind" } }
  }

  expect_failures = [var.notification]
}

# notification.attributes has "a..b", but a name is 1 to 256 letters, digits, _, - and single dots inside, and does not begin with AWS. or Amazon.
run "reject_attribute_with_two_dots" {
  command = plan

  variables {
    notification = { attributes = { "a..b" = "kind" } }
  }

  expect_failures = [var.notification]
}

# notification.attributes is {"kind":" "}, with a blank or null path: a blank is no JMESPath.
run "reject_attribute_path_blank" {
  command = plan

  variables {
    notification = { attributes = { kind = " " } }
  }

  expect_failures = [var.notification]
}

# notification.max_bytes is 0, but must be a whole number from 1 to 350000: the ledger row, at most 400 KB, holds the message.
run "reject_max_bytes_of_0" {
  command = plan

  variables {
    notification = { max_bytes = 0 }
  }

  expect_failures = [var.notification]
}

# notification.max_bytes is 350001, but must be a whole number from 1 to 350000: the ledger row, at most 400 KB, holds the message.
run "reject_max_bytes_above_what_the_ledger_holds" {
  command = plan

  variables {
    notification = { create_topic = false, max_bytes = 350001 }
  }

  expect_failures = [var.notification]
}

# notification.max_bytes is 262145 and notification.create_topic is true: a topic made here takes 262144 bytes. Publish to a topic of yours whose MaximumMessageSize is raised.
run "reject_max_bytes_above_what_a_new_topic_takes" {
  command = plan

  variables {
    notification = { max_bytes = 262145 }
  }

  expect_failures = [var.notification]
}

# --- Keys, alarms, logs and tags.

# encryption.kms_key_arn is "alias/aws/sqs", an alias: a role's rights hold for a key, not for an alias, and the alias/aws/… keys cannot be opened to SNS, EventBridge or S3. Give the key's ARN.
run "reject_kms_alias_name" {
  command = plan

  variables {
    encryption = { kms_key_arn = "alias/aws/sqs" }
  }

  expect_failures = [var.encryption]
}

# encryption.kms_key_arn is "arn:aws:kms:eu-central-1:111122223333:alias/orders", an alias: a role's rights hold for a key, not for an alias, and the alias/aws/… keys cannot be opened to SNS, EventBridge or S3. Give the key's ARN.
run "reject_kms_alias_arn" {
  command = plan

  variables {
    encryption = { kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:alias/orders" }
  }

  expect_failures = [var.encryption]
}

# encryption.kms_key_arn is "1234abcd-12ab-34cd-56ef-1234567890ab", but must be the ARN of a KMS key: arn:<partition>:kms:<region>:<account>:key/<id>.
run "reject_kms_key_id" {
  command = plan

  variables {
    encryption = { kms_key_arn = "1234abcd-12ab-34cd-56ef-1234567890ab" }
  }

  expect_failures = [var.encryption]
}

# alarms.actions has 6 ARNs, but CloudWatch takes at most 5.
run "reject_alarm_actions_more_than_5" {
  command = plan

  variables {
    alarms = { actions = [for n in range(6) : "arn:aws:sns:eu-central-1:111122223333:t${n}"] }
  }

  expect_failures = [var.alarms]
}

# alarms.actions is ["team@example.com"], but must hold ARNs only, such as those of SNS topics.
run "reject_alarm_action_that_is_an_address" {
  command = plan

  variables {
    alarms = { actions = ["team@example.com"] }
  }

  expect_failures = [var.alarms]
}

# alarms.duration_percent is 0, but must be from 1 to 100: no call takes longer than the timeout.
run "reject_alarm_duration_of_0_percent" {
  command = plan

  variables {
    alarms = { duration_percent = 0 }
  }

  expect_failures = [var.alarms]
}

# alarms.duration_percent is 101, but must be from 1 to 100: no call takes longer than the timeout.
run "reject_alarm_duration_of_101_percent" {
  command = plan

  variables {
    alarms = { duration_percent = 101 }
  }

  expect_failures = [var.alarms]
}

# alarms.errors is -1, but must be a whole number, 0 or more.
run "reject_alarm_errors_below_0" {
  command = plan

  variables {
    alarms = { errors = -1 }
  }

  expect_failures = [var.alarms]
}

# alarms.throttles is 0.5, but must be a whole number, 0 or more.
run "reject_alarm_throttles_of_a_half" {
  command = plan

  variables {
    alarms = { throttles = 0.5 }
  }

  expect_failures = [var.alarms]
}

# alarms.oldest_message_age_seconds is 59, but must be at least 60 and below queue.retention_days (4, in seconds 345600): an older message is gone, so the alarm could not go off.
run "reject_alarm_age_below_a_minute" {
  command = plan

  variables {
    alarms = { oldest_message_age_seconds = 59 }
  }

  expect_failures = [var.alarms]
}

# alarms.oldest_message_age_seconds is 86400, but must be at least 60 and below queue.retention_days (1, in seconds 86400): an older message is gone, so the alarm could not go off.
run "reject_alarm_age_at_the_retention" {
  command = plan

  variables {
    alarms = { oldest_message_age_seconds = 86400 }
    queue  = { retention_days = 1 }
  }

  expect_failures = [var.alarms]
}

# alarms.at_risk_actions has 6 ARNs, but CloudWatch takes at most 5.
run "reject_alarm_at_risk_actions_more_than_5" {
  command = plan

  variables {
    alarms = { at_risk_actions = [for n in range(6) : "arn:aws:sns:eu-central-1:111122223333:t${n}"] }
  }

  expect_failures = [var.alarms]
}

# alarms.at_risk_actions is ["+49 30 1234"], but must hold ARNs only, such as those of SNS topics.
run "reject_alarm_at_risk_action_that_is_a_number" {
  command = plan

  variables {
    alarms = { at_risk_actions = ["+49 30 1234"] }
  }

  expect_failures = [var.alarms]
}

# alarms.conflicts is -1, but must be a whole number, 0 or more.
run "reject_alarm_conflicts_below_0" {
  command = plan

  variables {
    alarms = { conflicts = -1 }
  }

  expect_failures = [var.alarms]
}

# alarms.rejected is 0.5, but must be a whole number, 0 or more.
run "reject_alarm_rejected_of_a_half" {
  command = plan

  variables {
    alarms = { rejected = 0.5 }
  }

  expect_failures = [var.alarms]
}

# alarms.stale_pending is -1, but must be a whole number, 0 or more.
run "reject_alarm_stale_pending_below_0" {
  command = plan

  variables {
    alarms = { stale_pending = -1 }
  }

  expect_failures = [var.alarms]
}

# log_retention_days is 2, but CloudWatch takes 0 (for ever), 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653.
run "reject_log_retention_of_2_days" {
  command = plan

  variables {
    log_retention_days = 2
  }

  expect_failures = [var.log_retention_days]
}

# tags has 1 keys (aws:team), but may have at most 50, and none that begins with aws:.
run "reject_tag_that_belongs_to_aws" {
  command = plan

  variables {
    tags = { "aws:team" = "orders" }
  }

  expect_failures = [var.tags]
}

# tags has "" with a value of 6 characters, but a key has 1 to 128 characters and a value at most 256.
run "reject_tag_without_a_key" {
  command = plan

  variables {
    tags = { "" = "orders" }
  }

  expect_failures = [var.tags]
}

# tags has "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk" with a value of 6 characters, but a key has 1 to 128 characters and a value at most 256.
run "reject_tag_key_of_129_characters" {
  command = plan

  variables {
    tags = { kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk = "orders" }
  }

  expect_failures = [var.tags]
}

# tags has "team" with a value of 257 characters, but a key has 1 to 128 characters and a value at most 256.
run "reject_tag_value_of_257_characters" {
  command = plan

  variables {
    tags = { team = "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv", name = "orders" }
  }

  expect_failures = [var.tags]
}
