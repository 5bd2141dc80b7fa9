# What modules/operation refuses beyond the root module: as tests/reject.tftest.hcl. What both refuse in the same words is
# tried in tests/plan/test_refusals.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  name = "charges"
  http = { hosts = ["api.example.com"], url = "'https://api.example.com/v1/charges'" }
}

# --- The effect: one that comes with the module, or one of your own.

# http is null and function.package is null: give one of the two, http for the effect that comes with the module or function.package for one of your own.
run "reject_no_effect_at_all" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = null
  }

  expect_failures = [var.http]
}

# http is set and function.package is "main.tf": give one of the two, http for the effect that comes with the module or function.package for one of your own.
run "reject_two_effects" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function = { handler = "mine.handler", package = "main.tf" }
  }

  expect_failures = [var.http]
}

# function.handler is "idempotent_consumer.handler.handler" and function.package is null: the zip that comes with the module has no handler of that name. Give the path of your own zip as function.package, or leave the handler null.
run "reject_handler_of_the_pipeline" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function = { handler = "idempotent_consumer.handler.handler" }
  }

  expect_failures = [var.function]
}

# function.environment has OPERATION_LEASE_MS, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_a_setting_of_operations" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function = { environment = { OPERATION_LEASE_MS = "1000" } }
  }

  expect_failures = [var.function]
}

# function.environment has OPERATION_HTTP, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_the_http_setting" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function = { environment = { OPERATION_HTTP = "{}" } }
  }

  expect_failures = [var.function]
}

# --- Times.

# operation.effect_timeout_seconds is 0, but must be a whole number, 1 or more.
run "reject_effect_timeout_of_0" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { effect_timeout_seconds = 0 }
  }

  expect_failures = [var.operation]
}

# operation.effect_timeout_seconds is 1.5, but must be a whole number, 1 or more.
run "reject_effect_timeout_of_a_fraction" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { effect_timeout_seconds = 1.5 }
  }

  expect_failures = [var.operation]
}

# batch_size is 5, operation.effect_timeout_seconds is 10 and function.timeout_seconds is 60: the effects of a batch run one after the other, and the claim before an effect and the record after it may take 7 seconds each, so the timeout must be at least 66 seconds (5 x 10 + 16), or messages come back unprocessed and reach the dead-letter queue.
run "reject_batch_that_takes_too_long" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    batch_size = 5
  }

  expect_failures = [var.batch_size]
}

# batch_size is 1, operation.effect_timeout_seconds is 1 and function.timeout_seconds is 16: the effects of a batch run one after the other, and the claim before an effect and the record after it may take 7 seconds each, so the timeout must be at least 17 seconds (1 x 1 + 16), or messages come back unprocessed and reach the dead-letter queue.
run "reject_function_timeout_that_holds_no_effect" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    batch_size = 1
    function   = { timeout_seconds = 16 }
    operation  = { effect_timeout_seconds = 1 }
  }

  expect_failures = [var.batch_size]
}

# batch_size is 10, operation.effect_timeout_seconds is 6 and function.timeout_seconds is 75: the effects of a batch run one after the other, and the claim before an effect and the record after it may take 7 seconds each, so the timeout must be at least 76 seconds (10 x 6 + 16), or messages come back unprocessed and reach the dead-letter queue.
run "reject_function_timeout_one_second_too_short" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    batch_size = 10
    operation  = { effect_timeout_seconds = 6 }
    function   = { timeout_seconds = 75 }
  }

  expect_failures = [var.batch_size]
}

# operation.lease_ms is 179999, below (function.timeout_seconds + 120) x 1000 (180000): with clocks that differ by a minute each, a second worker could begin while the first is still at work. Raise it, or leave it null.
run "reject_lease_below_the_functions_life" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 179999 }
  }

  expect_failures = [var.operation]
}

# operation.lease_ms is 300000, below (function.timeout_seconds + 120) x 1000 (420000): with clocks that differ by a minute each, a second worker could begin while the first is still at work. Raise it, or leave it null.
run "reject_lease_of_a_longer_function_below_its_life" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function  = { timeout_seconds = 300 }
    operation = { lease_ms = 300000 }
  }

  expect_failures = [var.operation]
}

# operation.lease_ms is 43200001, but must be a whole number, at most 43200000 (12 hours): SQS hides a message no longer.
run "reject_lease_of_over_12_hours" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 43200001 }
  }

  expect_failures = [var.operation]
}

# operation.lease_ms is 180000.5, but must be a whole number, at most 43200000 (12 hours): SQS hides a message no longer.
run "reject_lease_of_half_a_millisecond" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 180000.5 }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 59, but must be a whole number from 60 to 1209600 (14 days).
run "reject_max_age_of_59_seconds" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 59 }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 1209601, but must be a whole number from 60 to 1209600 (14 days).
run "reject_max_age_of_over_14_days" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 1209601 }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 60.5, but must be a whole number from 60 to 1209600 (14 days).
run "reject_max_age_of_a_fraction" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 60.5 }
  }

  expect_failures = [var.operation]
}

# operation.max_attempts is 0, but must be a whole number from 1 to 100.
run "reject_no_attempt" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 0 }
  }

  expect_failures = [var.operation]
}

# operation.max_attempts is 101, but must be a whole number from 1 to 100.
run "reject_one_hundred_and_one_attempts" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 101 }
  }

  expect_failures = [var.operation]
}

# operation.max_attempts is 2.5, but must be a whole number from 1 to 100.
run "reject_two_and_a_half_attempts" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 2.5 }
  }

  expect_failures = [var.operation]
}

# operation.retry_seconds is 0, but must be a whole number from 1 to 39600 (11 hours).
run "reject_retry_after_0_seconds" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { retry_seconds = 0 }
  }

  expect_failures = [var.operation]
}

# operation.retry_seconds is 39601, but must be a whole number from 1 to 39600 (11 hours).
run "reject_retry_after_over_11_hours" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { retry_seconds = 39601 }
  }

  expect_failures = [var.operation]
}

# operation.settle_seconds is -1, but must be a whole number from 0 to 1209600 (14 days).
run "reject_settle_before_the_lease_ends" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { settle_seconds = -1 }
  }

  expect_failures = [var.operation]
}

# operation.settle_seconds is 1209601, but must be a whole number from 0 to 1209600 (14 days).
run "reject_settle_after_14_days" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { settle_seconds = 1209601 }
  }

  expect_failures = [var.operation]
}

# --- The policy for what is uncertain.

# operation.uncertain is "retry", but must be park, provider_key or reconcile.
run "reject_policy_that_is_none" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { uncertain = "retry" }
  }

  expect_failures = [var.operation]
}

# operation.uncertain is "PARK", but must be park, provider_key or reconcile.
run "reject_policy_in_upper_case" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { uncertain = "PARK" }
  }

  expect_failures = [var.operation]
}

# operation.uncertain is "reconcile" and http.reconcile is null: say how the provider is asked, or choose park or provider_key.
run "reject_reconcile_without_a_way_to_ask" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { uncertain = "reconcile" }
  }

  expect_failures = [var.operation]
}

# operation.uncertain is "provider_key", http.idempotency_header is "", and no path of http names key: without the key a repeated call would be applied again. Send the key, or choose park or reconcile.
run "reject_provider_key_that_is_sent_nowhere" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts              = ["api.example.com"]
      idempotency_header = ""
      url                = "'https://api.example.com/v1/charges'"
    }
    operation = { uncertain = "provider_key" }
  }

  expect_failures = [var.operation]
}

# operation.uncertain is "provider_key", http.idempotency_header is "", and no path of http names key: without the key a repeated call would be applied again. Send the key, or choose park or reconcile.
run "reject_provider_key_beside_a_path_of_a_similar_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      body               = "event.keys"
      hosts              = ["api.example.com"]
      idempotency_header = ""
      url                = "'https://api.example.com/v1/charges'"
    }
    operation = { uncertain = "provider_key" }
  }

  expect_failures = [var.operation]
}

# operation.uncertain is "provider_key", http.idempotency_header is "", and no path of http names key: without the key a repeated call would be applied again. Send the key, or choose park or reconcile.
run "reject_provider_key_beside_a_field_of_that_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers            = { X-Object = "event.s3.object.key" }
      hosts              = ["api.example.com"]
      idempotency_header = ""
      url                = "'https://api.example.com/v1/charges'"
    }
    operation = { uncertain = "provider_key" }
  }

  expect_failures = [var.operation]
}

# operation.retry_seconds is 60, not below operation.max_age_seconds (60), and operation.max_attempts is 2: a second attempt would always be too late. Lower operation.retry_seconds, raise operation.max_age_seconds, or set operation.max_attempts to 1.
run "reject_retry_when_it_is_too_late" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 60, max_attempts = 2, retry_seconds = 60 }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 180, but with operation.uncertain "provider_key" must be above operation.lease_ms (in seconds 180): an uncertain attempt is repeated when its lease is over, and would always be too late. Raise operation.max_age_seconds, or choose park.
run "reject_provider_key_that_is_too_old_when_the_lease_ends" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 180, uncertain = "provider_key" }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 200, but with operation.uncertain "provider_key" must be above operation.lease_ms (in seconds 200.001): an uncertain attempt is repeated when its lease is over, and would always be too late. Raise operation.max_age_seconds, or choose park.
run "reject_provider_key_that_is_too_old_when_its_own_lease_ends" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 200001, max_age_seconds = 200, uncertain = "provider_key" }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 310, but with operation.uncertain "reconcile" must be above operation.lease_ms (in seconds 180) + operation.settle_seconds (130): the provider is asked no earlier, and another attempt would always be too late. Raise operation.max_age_seconds, or lower one of the two.
run "reject_reconcile_that_is_too_old_when_it_asks" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
    operation = { max_age_seconds = 310, uncertain = "reconcile" }
  }

  expect_failures = [var.operation]
}

# operation.max_age_seconds is 82800, but with operation.uncertain "reconcile" must be above operation.lease_ms (in seconds 180) + operation.settle_seconds (100000): the provider is asked no earlier, and another attempt would always be too late. Raise operation.max_age_seconds, or lower one of the two.
run "reject_settling_of_an_own_effect_that_is_too_old" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function  = { handler = "mine.handler", package = "main.tf" }
    http      = null
    operation = { settle_seconds = 100000, uncertain = "reconcile" }
  }

  expect_failures = [var.operation]
}

# --- The queue.

# queue.max_receive_count is 5, not above operation.max_attempts (5): SQS would move a message to the dead-letter queue before its last attempt. Raise it, or leave it null.
run "reject_fewer_receives_than_attempts" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 5 }
    queue     = { max_receive_count = 5 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (15) x the largest of queue.visibility_timeout_seconds (360), queue.backoff_max_seconds (null) and operation.lease_ms (in seconds 180) must be below queue.retention_days (0.0625, in seconds 5400): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the largest of the three, or raise queue.retention_days.
run "reject_receives_that_outlast_the_retention_by_visibility" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 5 }
    queue     = { retention_days = 0.0625 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (15) x the largest of queue.visibility_timeout_seconds (360), queue.backoff_max_seconds (23040) and operation.lease_ms (in seconds 180) must be below queue.retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the largest of the three, or raise queue.retention_days.
run "reject_receives_that_outlast_the_retention_by_backoff" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_attempts = 5 }
    queue     = { backoff_max_seconds = 23040 }
  }

  expect_failures = [var.queue]
}

# queue.max_receive_count (15) x the largest of queue.visibility_timeout_seconds (360), queue.backoff_max_seconds (null) and operation.lease_ms (in seconds 23040) must be below queue.retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the largest of the three, or raise queue.retention_days.
run "reject_receives_that_outlast_the_retention_by_the_lease" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 23040000, max_attempts = 5 }
    queue     = {}
  }

  expect_failures = [var.queue]
}

# queue.retention_days is 4 (345600 seconds), but with operation.uncertain "reconcile" must be at least 2 x (operation.lease_ms (in seconds 180) + operation.settle_seconds (172621)): a message has its last receive well before it expires, and the provider must be asked before that. Raise queue.retention_days, or lower one of the two.
run "reject_settling_that_outlasts_half_of_the_retention" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
    operation = { max_age_seconds = 1209600, settle_seconds = 172621, uncertain = "reconcile" }
    queue     = {}
  }

  expect_failures = [var.queue]
}

# --- Events and alarms.

# event has a blank path (fingerprint null, id " "): a blank is no JMESPath. Leave it out for the default.
run "reject_blank_event_id" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    event = { id = " " }
  }

  expect_failures = [var.event]
}

# alarms.failed is 0.5, but must be a whole number, 0 or more.
run "reject_failed_of_a_fraction" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    alarms = { failed = 0.5 }
  }

  expect_failures = [var.alarms]
}

# alarms.failed is -1, but must be a whole number, 0 or more.
run "reject_failed_below_0" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    alarms = { failed = -1 }
  }

  expect_failures = [var.alarms]
}

# --- The call: its address.

# http has a blank or null path (url "", body "event", headers {}, result "{status: status}", reconcile null): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_blank_url" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "" }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body "event", headers {}, result "{status: status}", reconcile {"applied":"status == `200`","headers":{},"not_applied_statuses":[404],"result":"{status: status}","url":" "}): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_blank_reconcile_url" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = " " }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body "event", headers {}, result "{status: status}", reconcile {"applied":"","headers":{},"not_applied_statuses":[404],"result":"{status: status}","url":"url"}): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_blank_applied" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "", url = "url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body " ", headers {}, result "{status: status}", reconcile null): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_body_of_blanks" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      body  = " "
      hosts = ["api.example.com"]
      url   = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body "event", headers {}, result "", reconcile null): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_blank_result" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      result = ""
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body "event", headers {"X-Order":""}, result "{status: status}", reconcile null): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_blank_header_path" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { X-Order = "" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http has a blank or null path (url "'https://api.example.com/v1/charges'", body "event", headers {"X-Order":null}, result "{status: status}", reconcile null): a blank is no JMESPath. Only the body may be "", which sends none.
run "reject_null_header_path" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { X-Order = null }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is https://api.example.com/v1/charges, but a fixed address is in quotes of its own: "'https://…'".
run "reject_url_without_quotes_of_its_own" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "https://api.example.com/v1/charges" }
  }

  expect_failures = [var.http]
}

# http.url is "https://api.example.com/v1/charges", but a fixed address is in quotes of its own: "'https://…'".
run "reject_url_in_the_quotes_of_a_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "\"https://api.example.com/v1/charges\"" }
  }

  expect_failures = [var.http]
}

# http.url is [https://api.example.com/v1/charges, key], but a fixed address is in quotes of its own: "'https://…'".
run "reject_url_with_segments_without_quotes_of_its_own" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "[https://api.example.com/v1/charges, key]" }
  }

  expect_failures = [var.http]
}

# http.url is [ "HTTP://api.example.com/v1/charges", key], but a fixed address is in quotes of its own: "'https://…'".
run "reject_url_with_segments_in_the_quotes_of_a_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "[ \"HTTP://api.example.com/v1/charges\", key]" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1/charges' and http.reconcile.url https://api.example.com/v1/charges, but a fixed address is in quotes of its own: "'https://…'".
run "reject_reconcile_url_without_quotes_of_its_own" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "https://api.example.com/v1/charges" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'http://api.example.com/v1/charges', but an address begins with https://: without TLS anyone on the way could read and change what is sent (http.allow_http is for tests).
run "reject_url_without_tls" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'http://api.example.com/v1/charges'" }
  }

  expect_failures = [var.http]
}

# http.url is 'api.example.com/v1/charges', but an address begins with https://: without TLS anyone on the way could read and change what is sent (http.allow_http is for tests).
run "reject_url_without_a_scheme" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'api.example.com/v1/charges'" }
  }

  expect_failures = [var.http]
}

# http.url is 'ftp://api.example.com/v1/charges', but an address begins with https://: without TLS anyone on the way could read and change what is sent (http.allow_http is for tests).
run "reject_url_of_another_scheme_although_http_is_allowed" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      allow_http = true
      hosts      = ["api.example.com"]
      url        = "'ftp://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1/charges' and http.reconcile.url ['http://api.example.com/v1/charges', key], but an address begins with https://: without TLS anyone on the way could read and change what is sent (http.allow_http is for tests).
run "reject_reconcile_url_without_tls" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "['http://api.example.com/v1/charges', key]" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.org/v1/charges', but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_url_of_a_host_that_is_not_allowed" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.org/v1/charges'" }
  }

  expect_failures = [var.http]
}

# http.url is ['https://api.example.org/v1/orders', event.id], but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_url_with_segments_of_a_host_that_is_not_allowed" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "['https://api.example.org/v1/orders', event.id]" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com:8443/v1/charges', but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_url_of_another_port" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com:8443/v1/charges'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com@evil.example/v1/charges', but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_url_with_a_user" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com@evil.example/v1/charges'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1/charges' and http.reconcile.url 'https://status.example.com/charges', but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_reconcile_url_of_a_host_that_is_not_allowed" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "'https://status.example.com/charges'" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'http://api.example.com:443/v1/charges', but http.hosts is ["api.example.com"]: no other host is called. Add the address's own.
run "reject_url_of_the_port_of_the_other_scheme" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      allow_http = true
      hosts      = ["api.example.com"]
      url        = "'http://api.example.com:443/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'http://api.example.com/v1/charges', but http.hosts is ["api.example.com:443"]: no other host is called. Add the address's own.
run "reject_url_without_tls_of_a_host_with_the_port_of_tls" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      allow_http = true
      hosts      = ["api.example.com:443"]
      url        = "'http://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1#x', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_fragment" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/v1#x'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v 1', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_blank" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/v 1'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1?a= ', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_blank_in_its_query" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/v1?a= '" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/bücher', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_letter_beyond_ascii" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/bücher'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v%0A1', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_control_character" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/v%0A1'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com//v1', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_an_empty_path_segment" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com//v1'" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1/%2E./charges', but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_path_segment_of_dots" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "'https://api.example.com/v1/%2E./charges'" }
  }

  expect_failures = [var.http]
}

# http.url is ['https://api.example.com/v1/..', key], but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_path_segment_of_dots_at_its_end" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "['https://api.example.com/v1/..', key]" }
  }

  expect_failures = [var.http]
}

# http.url is ['https://api.example.com/v1?a=b', key], but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_url_with_a_query_before_its_segments" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com"], url = "['https://api.example.com/v1?a=b', key]" }
  }

  expect_failures = [var.http]
}

# http.url is 'https://api.example.com/v1/charges' and http.reconcile.url ['https://api.example.com/v1#x', key], but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded.
run "reject_reconcile_url_with_a_fragment" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "['https://api.example.com/v1#x', key]" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.hosts is [], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_no_host" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = [], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h","h"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_fifty_one_hosts" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = [for n in range(51) : "h"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["https://api.example.com"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_with_a_scheme" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["https://api.example.com"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["api.example.com/v1"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_with_a_path" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com/v1"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["*.example.com"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_with_a_wildcard" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["*.example.com"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["bücher.example"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_of_letters_beyond_ascii" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["bücher.example"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["api.example.com:65536"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_with_a_port_that_is_none" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["api.example.com:65536"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd:8443"], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_host_of_254_characters" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.dddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd:8443"], url = "event.url" }
  }

  expect_failures = [var.http]
}

# http.hosts is [null], but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode.
run "reject_null_host" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = { hosts = [null], url = "event.url" }
  }

  expect_failures = [var.http]
}

# --- The call: what is sent, and what the answer says.

# http.method is "GET", but must be POST, PUT, PATCH or DELETE.
run "reject_method_that_reads" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      method = "GET"
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.method is "post", but must be POST, PUT, PATCH or DELETE.
run "reject_method_in_lower_case" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      method = "post"
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "X Order", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_header_with_a_blank" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { "X Order" = "event.id" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "content-length", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_header_that_frames_the_request" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { content-length = "event.size" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "Host", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_header_of_the_host" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { Host = "event.host" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "Proxy-Authorization", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_header_of_a_proxy" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts              = ["api.example.com"]
      idempotency_header = "Proxy-Authorization"
      url                = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "TE", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_reconcile_header_that_frames_the_request" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", headers = { TE = "event.te" }, url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "Idempotency-Key", "", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_blank_secret_header" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { header = "", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "X-0", "X-1", "X-10", "X-11", "X-12", "X-13", "X-14", "X-15", "X-16", "X-17", "X-18", "X-19", "X-2", "X-20", "X-21", "X-22", "X-23", "X-24", "X-25", "X-26", "X-27", "X-28", "X-29", "X-3", "X-30", "X-31", "X-32", "X-33", "X-34", "X-35", "X-36", "X-37", "X-38", "X-39", "X-4", "X-40", "X-41", "X-42", "X-43", "X-44", "X-45", "X-46", "X-47", "X-48", "X-49", "X-5", "X-50", "X-6", "X-7", "X-8", "X-9", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_fifty_one_headers" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { for n in range(51) : "X-${n}" => "event.id" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "X-0", "X-1", "X-10", "X-11", "X-12", "X-13", "X-14", "X-15", "X-16", "X-17", "X-18", "X-19", "X-2", "X-20", "X-21", "X-22", "X-23", "X-24", "X-25", "X-26", "X-27", "X-28", "X-29", "X-3", "X-30", "X-31", "X-32", "X-33", "X-34", "X-35", "X-36", "X-37", "X-38", "X-39", "X-4", "X-40", "X-41", "X-42", "X-43", "X-44", "X-45", "X-46", "X-47", "X-48", "X-49", "X-5", "X-50", "X-6", "X-7", "X-8", "X-9", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_fifty_one_reconcile_headers" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", headers = { for n in range(51) : "X-${n}" => "event.id" }, url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX", "Idempotency-Key", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_header_of_101_characters" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX = "event.id" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http names the headers "Idempotency-Key", "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX", but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets.
run "reject_secret_header_of_101_characters" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { header = "XXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXXX", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.headers is {"X-Order":"event.id","x-order":"event.order"}, http.idempotency_header "Idempotency-Key": one header twice, upper and lower case being the same. Leave it out of the headers.
run "reject_header_twice" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { X-Order = "event.id", x-order = "event.order" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.headers is {"idempotency-key":"key"}, http.idempotency_header "Idempotency-Key": one header twice, upper and lower case being the same. Leave it out of the headers.
run "reject_header_of_the_key" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { idempotency-key = "key" }
      hosts   = ["api.example.com"]
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.headers is {"Authorization":"event.token"}, http.idempotency_header "Idempotency-Key" and http.secret.header "Authorization": one header twice, upper and lower case being the same. Leave it out of the headers.
run "reject_header_of_the_secret" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers = { Authorization = "event.token" }
      hosts   = ["api.example.com"]
      secret  = { secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url     = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.headers is {}, http.idempotency_header "Idempotency-Key" and http.secret.header "Idempotency-Key": one header twice, upper and lower case being the same. Leave it out of the headers.
run "reject_secret_in_the_header_of_the_key" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { header = "Idempotency-Key", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.headers is {}, http.reconcile.headers {"authorization":"event.token"}, http.idempotency_header "Idempotency-Key" and http.secret.header "Authorization": one header twice, upper and lower case being the same. Leave it out of the headers.
run "reject_reconcile_header_of_the_secret" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", headers = { authorization = "event.token" }, url = "event.url" }
      secret    = { secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[],"final":[600],"retryable":[],"uncertain":[]}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200.
run "reject_status_of_600" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { final = [600] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[],"final":[],"retryable":[503.5],"uncertain":[]}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200.
run "reject_status_of_a_fraction" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { retryable = [503.5] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[100],"final":[],"retryable":[],"uncertain":[]}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200.
run "reject_completed_before_the_answer" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { completed = [100] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[],"final":[],"retryable":[],"uncertain":[99]}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200.
run "reject_uncertain_status_of_99" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { uncertain = [99] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[],"final":[null],"retryable":[],"uncertain":[]}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200.
run "reject_null_status" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { final = [null] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[409],"final":[409],"retryable":[],"uncertain":[]}, with a status twice: it can say one thing only.
run "reject_status_that_says_two_things" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { completed = [409], final = [409] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.statuses is {"completed":[],"final":[404,404],"retryable":[],"uncertain":[]}, with a status twice: it can say one thing only.
run "reject_status_twice_in_a_list" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts    = ["api.example.com"]
      statuses = { final = [404, 404] }
      url      = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.reconcile.not_applied_statuses is [500], but must be from 400 to 499 without 401, 403, 408, 425 and 429: another status does not say that nothing was applied.
run "reject_not_applied_status_of_the_server" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", not_applied_statuses = [500], url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.reconcile.not_applied_statuses is [404,403], but must be from 400 to 499 without 401, 403, 408, 425 and 429: another status does not say that nothing was applied.
run "reject_not_applied_status_of_one_who_may_not_ask" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", not_applied_statuses = [404, 403], url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.reconcile.not_applied_statuses is [404,null], but must be from 400 to 499 without 401, 403, 408, 425 and 429: another status does not say that nothing was applied.
run "reject_null_not_applied_status" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", not_applied_statuses = [404, null], url = "event.url" }
      url       = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# --- The secret.

# http.secret.secret_arn is null and http.secret.parameter_arn null: give one of the two.
run "reject_secret_without_an_arn" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = {}
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.secret_arn is "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" and http.secret.parameter_arn "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token": give one of the two.
run "reject_secret_with_two_arns" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { parameter_arn = "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.secret_arn is "payments-token", but must be the whole ARN of a secret: arn:<partition>:secretsmanager:<region>:<account>:secret:<name>-<6 characters of AWS's>.
run "reject_secret_by_its_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { secret_arn = "payments-token" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.secret_arn is "arn:aws:secretsmanager:eu-central-1:111122223333:secret:token", but must be the whole ARN of a secret: arn:<partition>:secretsmanager:<region>:<account>:secret:<name>-<6 characters of AWS's>.
run "reject_secret_arn_without_its_ending" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:token" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.secret_arn is "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token", but must be the whole ARN of a secret: arn:<partition>:secretsmanager:<region>:<account>:secret:<name>-<6 characters of AWS's>.
run "reject_secret_arn_of_a_parameter" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { secret_arn = "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.secret_arn is "arn:aws-x1:secretsmanager:eu-central-1:111122223333:secret:token-Ab12Cd", but must be the whole ARN of a secret: arn:<partition>:secretsmanager:<region>:<account>:secret:<name>-<6 characters of AWS's>.
run "reject_secret_arn_of_a_partition_with_a_digit" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { secret_arn = "arn:aws-x1:secretsmanager:eu-central-1:111122223333:secret:token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.parameter_arn is "/payments/token", but must be the ARN of an SSM parameter: arn:<partition>:ssm:<region>:<account>:parameter/<name>.
run "reject_parameter_by_its_name" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { parameter_arn = "/payments/token" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.parameter_arn is "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd", but must be the ARN of an SSM parameter: arn:<partition>:ssm:<region>:<account>:parameter/<name>.
run "reject_parameter_arn_of_a_secret" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { parameter_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret.parameter_arn is "arn:aws-x1:ssm:eu-central-1:111122223333:parameter/payments/token", but must be the ARN of an SSM parameter: arn:<partition>:ssm:<region>:<account>:parameter/<name>.
run "reject_parameter_arn_of_a_partition_with_a_digit" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { parameter_arn = "arn:aws-x1:ssm:eu-central-1:111122223333:parameter/payments/token" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 0, prefix "Bearer " and json_key null, but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_read_for_each_call" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { max_age_seconds = 0, secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 86401, prefix "Bearer " and json_key null, but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_kept_for_over_a_day" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { max_age_seconds = 86401, secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 300, prefix "Bearer\n" and json_key null, but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_behind_a_line_break" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { prefix = "Bearer\n", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 300, prefix "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp" and json_key null, but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_behind_101_characters" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { prefix = "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 300, prefix "Bearer " and json_key "", but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_of_a_blank_key" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { json_key = "", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}

# http.secret has max_age_seconds 300, prefix "Bearer " and json_key "  ", but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null.
run "reject_secret_of_a_key_of_blanks" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts  = ["api.example.com"]
      secret = { json_key = "  ", secret_arn = "arn:aws:secretsmanager:eu-central-1:111122223333:secret:payments-token-Ab12Cd" }
      url    = "'https://api.example.com/v1/charges'"
    }
  }

  expect_failures = [var.http]
}
