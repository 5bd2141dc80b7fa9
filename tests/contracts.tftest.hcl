# What the whole module creates and how it is set by default. Its parts have files of their own beside this one.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

override_resource {
  target = module.queue.aws_sqs_queue.dead_letter
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq"
  }
}

override_resource {
  target = module.queue.aws_sqs_queue.intake
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:orders"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders"
  }
}

override_resource {
  target = module.tables.aws_dynamodb_table.business
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/order_records" }
}

override_resource {
  target = module.tables.aws_dynamodb_table.ledger
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events" }
}

variables {
  business_table_name = "order_records"
  name                = "orders"
}

run "minimal_block" {
  assert {
    condition = output.alarm_names == tolist([
      "orders-conflicts", "orders-dead-letters", "orders-duration", "orders-errors", "orders-events-at-risk",
      "orders-misconfigured", "orders-oldest-message", "orders-reconciler-errors", "orders-reconciler-silent",
      "orders-recursion", "orders-rejected", "orders-stale-pending", "orders-throttles",
    ])
    error_message = "alarm_names"
  }

  assert {
    condition = [output.queue_arn, output.queue_url, output.dead_letter_queue_arn, output.dead_letter_queue_url] == [
      "arn:aws:sqs:eu-central-1:111122223333:orders",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/orders",
      "arn:aws:sqs:eu-central-1:111122223333:orders-dlq",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq",
    ]
    error_message = "queues"
  }

  assert {
    condition = [output.ledger_table_name, output.ledger_table_arn, output.business_table_name, output.business_table_arn] == [
      "orders-processed-events",
      "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events",
      "order_records",
      "arn:aws:dynamodb:eu-central-1:111122223333:table/order_records",
    ]
    error_message = "tables"
  }

  assert {
    condition = [output.function_name, output.function_arn, output.role_name, output.role_arn, output.log_group_name] == [
      "orders-worker",
      "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker",
      "orders-worker",
      "arn:aws:iam::111122223333:role/orders-worker",
      "/aws/lambda/orders-worker",
    ]
    error_message = "function"
  }

  assert {
    condition     = [output.dashboard_name, output.reconciler_function_name] == ["orders", "orders-reconciler"]
    error_message = "dashboard and reconciler"
  }

  assert {
    condition     = output.topic_arn == "arn:aws:sns:eu-central-1:111122223333:orders-notifications"
    error_message = "topic_arn"
  }

  # The names and defaults that settings.py reads.
  assert {
    condition = local.settings == {
      BACKOFF_MAX_SECONDS        = "900"
      BUSINESS_HASH_KEY          = "id"
      BUSINESS_HASH_KEY_TYPE     = "S"
      BUSINESS_TABLE             = "order_records"
      CONSUMER_NAME              = "orders"
      DEAD_LETTER_QUEUE_URL      = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq"
      EVENT_ENVELOPE             = "raw"
      EVENT_ITEM                 = "@"
      EVENT_WRITE_MODE           = "insert"
      LEDGER_TABLE               = "orders-processed-events"
      MAX_RECEIVE_COUNT          = "5"
      NOTIFICATION_ATTRIBUTES    = "{}"
      NOTIFICATION_MAX_BYTES     = "262144"
      NOTIFICATION_MESSAGE       = "@"
      QUEUE_URL                  = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders"
      RETENTION_SECONDS          = "345600"
      TOPIC_ARN                  = "arn:aws:sns:eu-central-1:111122223333:orders-notifications"
      TTL_WINDOW_DAYS            = "30"
      VISIBILITY_TIMEOUT_SECONDS = "180"
    }
    error_message = "settings are ${jsonencode(local.settings)}"
  }

  assert {
    condition = local.reconciler_settings == {
      CONSUMER_NAME                = "orders"
      LEDGER_TABLE                 = "orders-processed-events"
      RECONCILER_THRESHOLD_SECONDS = "900"
      TOPIC_ARN                    = "arn:aws:sns:eu-central-1:111122223333:orders-notifications"
      TTL_WINDOW_DAYS              = "30"
    }
    error_message = "the reconciler's settings are ${jsonencode(local.reconciler_settings)}"
  }

  assert {
    condition     = [local.max_receive_count, local.oldest_message_age_seconds, local.visibility_timeout_seconds] == [5, 3600, 180]
    error_message = "derived numbers"
  }

  assert {
    condition = (
      aws_sns_topic.notifications[0].name == "orders-notifications" &&
      !aws_sns_topic.notifications[0].fifo_topic && aws_sns_topic.notifications[0].kms_master_key_id == null
    )
    error_message = "topic"
  }
}

run "every_setting" {
  command = plan

  variables {
    business_table  = { hash_key = "order", hash_key_type = "N", range_key = "line", range_key_type = "N" }
    event           = { envelope = "sns", fingerprint = "body.total", id = "meta.id", item = "body", version = "meta.version", write_mode = "newer" }
    notification    = { attributes = { kind = "meta.kind" }, max_bytes = 1000, message = "meta" }
    queue           = { backoff_max_seconds = 3600, max_receive_count = 7, retention_days = 2.5, visibility_timeout_seconds = 60 }
    reconciler      = { interval_minutes = 1, memory_mb = 256, threshold_seconds = 60, timeout_seconds = 60 }
    ttl_window_days = 400
  }

  assert {
    condition = { for name, value in local.settings : name => value if !contains(["DEAD_LETTER_QUEUE_URL", "QUEUE_URL", "TOPIC_ARN"], name) } == {
      BACKOFF_MAX_SECONDS        = "3600"
      BUSINESS_HASH_KEY          = "order"
      BUSINESS_HASH_KEY_TYPE     = "N"
      BUSINESS_RANGE_KEY         = "line"
      BUSINESS_RANGE_KEY_TYPE    = "N"
      BUSINESS_TABLE             = "order_records"
      CONSUMER_NAME              = "orders"
      EVENT_ENVELOPE             = "sns"
      EVENT_FINGERPRINT          = "body.total"
      EVENT_ID                   = "meta.id"
      EVENT_ITEM                 = "body"
      EVENT_VERSION              = "meta.version"
      EVENT_WRITE_MODE           = "newer"
      LEDGER_TABLE               = "orders-processed-events"
      MAX_RECEIVE_COUNT          = "7"
      NOTIFICATION_ATTRIBUTES    = "{\"kind\":\"meta.kind\"}"
      NOTIFICATION_MAX_BYTES     = "1000"
      NOTIFICATION_MESSAGE       = "meta"
      RETENTION_SECONDS          = "216000"
      TTL_WINDOW_DAYS            = "400"
      VISIBILITY_TIMEOUT_SECONDS = "60"
    }
    error_message = "settings are ${jsonencode(keys(local.settings))}"
  }

  # A caller's function.environment is merged under the settings: what it may not name is refused.
  assert {
    condition     = length(setsubtract(setunion(keys(local.settings), keys(local.reconciler_settings)), local.reserved_environment)) == 0
    error_message = "reserved_environment lacks ${join(", ", setsubtract(setunion(keys(local.settings), keys(local.reconciler_settings)), local.reserved_environment))}"
  }

  assert {
    condition     = local.reconciler_settings["RECONCILER_THRESHOLD_SECONDS"] == "60" && local.reconciler_settings["TTL_WINDOW_DAYS"] == "400"
    error_message = "the reconciler's settings are ${jsonencode(keys(local.reconciler_settings))}"
  }
}

run "fifo" {
  command = plan

  variables {
    queue = { fifo = true }
  }

  assert {
    condition     = local.max_receive_count == 10 && local.settings["MAX_RECEIVE_COUNT"] == "10"
    error_message = "on FIFO records blocked by an earlier one use up receives, so 10"
  }

  assert {
    condition     = aws_sns_topic.notifications[0].fifo_topic && aws_sns_topic.notifications[0].name == "orders-notifications.fifo"
    error_message = "the topic keeps the queue's order"
  }
}

run "visibility_is_six_timeouts_and_the_window" {
  command = plan

  variables {
    batch_size = 100
    function   = { batching_window_seconds = 20, timeout_seconds = 60 }
  }

  assert {
    condition     = local.visibility_timeout_seconds == 380
    error_message = "visibility is ${local.visibility_timeout_seconds}"
  }
}

run "age_alarm_stays_below_a_short_retention" {
  command = plan

  variables {
    queue = { retention_days = 0.05 }
  }

  assert {
    condition     = local.oldest_message_age_seconds == 2160
    error_message = "age is ${local.oldest_message_age_seconds}"
  }
}

run "backoff_ends_before_a_short_retention_does" {
  command = plan

  variables {
    queue = { retention_days = 0.05 }
  }

  # 5 x 863 seconds, of 4320.
  assert {
    condition     = local.backoff_max_seconds == 863
    error_message = "the cap is ${local.backoff_max_seconds}"
  }
}

run "backoff_is_not_below_the_visibility_timeout" {
  command = plan

  variables {
    queue = { visibility_timeout_seconds = 3600 }
  }

  assert {
    condition     = local.backoff_max_seconds == 3600 && local.reconciler_threshold_seconds == 7200
    error_message = "the cap is ${local.backoff_max_seconds}, the threshold ${local.reconciler_threshold_seconds}"
  }
}

# 3 x 19 of 60 seconds: the shortest retention that SQS has.
run "backoff_in_a_minute" {
  command = plan

  variables {
    function = { timeout_seconds = 10 }
    queue    = { max_receive_count = 3, retention_days = 0.0006945, visibility_timeout_seconds = 10 }
  }

  assert {
    condition     = local.backoff_max_seconds == 19 && local.settings["RETENTION_SECONDS"] == "60"
    error_message = "the cap is ${local.backoff_max_seconds}, the retention ${local.retention_seconds}"
  }
}

run "no_backoff" {
  command = plan

  variables {
    queue = { backoff_max_seconds = 0 }
  }

  assert {
    condition     = local.settings["BACKOFF_MAX_SECONDS"] == "0"
    error_message = "the cap is ${local.backoff_max_seconds}"
  }
}

run "no_reconciler_and_no_dashboard" {
  command = plan

  variables {
    alarms     = { dashboard = false }
    reconciler = { enabled = false }
  }

  assert {
    condition     = output.dashboard_name == null && output.reconciler_function_name == null
    error_message = "outputs"
  }

  assert {
    condition     = length(output.alarm_names) == 10
    error_message = "alarms are ${join(", ", output.alarm_names)}"
  }
}

run "existing_topic" {
  command = plan

  variables {
    notification = { create_topic = false, max_bytes = 350000, topic_arn = "arn:aws:sns:eu-central-1:111122223333:mine.fifo" }
  }

  assert {
    condition     = length(aws_sns_topic.notifications) == 0
    error_message = "no topic is made"
  }

  assert {
    condition     = output.topic_arn == "arn:aws:sns:eu-central-1:111122223333:mine.fifo" && local.settings["TOPIC_ARN"] == output.topic_arn
    error_message = "the existing topic is used"
  }
}

run "no_topic" {
  command = plan

  variables {
    notification = { create_topic = false }
  }

  assert {
    condition     = length(aws_sns_topic.notifications) == 0 && output.topic_arn == null && !contains(concat(keys(local.settings), keys(local.reconciler_settings)), "TOPIC_ARN")
    error_message = "nothing is published"
  }
}

run "kms_key_encrypts_the_topic" {
  command = plan

  variables {
    encryption = { kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab" }
  }

  assert {
    condition     = aws_sns_topic.notifications[0].kms_master_key_id == var.encryption.kms_key_arn
    error_message = "the topic's key"
  }
}

run "a_batch_that_just_fits_and_a_regional_producer" {
  command = plan

  variables {
    batch_size = 100
    function   = { batching_window_seconds = 1, timeout_seconds = 10 }
    queue      = { producers = [{ service = "sns.eu-south-2.amazonaws.com", source_arn = "arn:aws:sns:eu-south-2:111122223333:orders" }] }
    tags       = { (join("", [for n in range(128) : "k"])) = join("", [for n in range(256) : "v"]), empty = "" }
  }

  assert {
    condition     = local.visibility_timeout_seconds == 61
    error_message = "visibility is ${local.visibility_timeout_seconds}"
  }
}
