# modules/operation: what it creates, what its function is told, and what is taken at the edge of what is refused. Its
# role is in tests/plan/test_iam.py, its refusals in tests/reject_operation.tftest.hcl.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

override_resource {
  target = module.queue.aws_sqs_queue.dead_letter
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:charges-dlq"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq"
  }
}

override_resource {
  target = module.queue.aws_sqs_queue.intake
  values = {
    arn = "arn:aws:sqs:eu-central-1:111122223333:charges"
    url = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges"
  }
}

variables {
  name = "charges"
  http = { hosts = ["api.example.com"], url = "'https://api.example.com/v1/charges'" }
}

run "shortest_block" {
  module {
    source = "./modules/operation"
  }

  assert {
    condition = tomap(local.settings) == tomap({
      BACKOFF_MAX_SECONDS              = "900"
      CONSUMER_NAME                    = "charges"
      DEAD_LETTER_QUEUE_URL            = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq"
      EVENT_ENVELOPE                   = "raw"
      LEDGER_TABLE                     = "charges-processed-events"
      MAX_RECEIVE_COUNT                = "45"
      OPERATION_EFFECT_TIMEOUT_SECONDS = "10"
      OPERATION_HTTP                   = local.settings.OPERATION_HTTP
      OPERATION_LEASE_MS               = "180000"
      OPERATION_MAX_AGE_SECONDS        = "82800"
      OPERATION_MAX_ATTEMPTS           = "20"
      OPERATION_RETRY_SECONDS          = "30"
      OPERATION_SETTLE_SECONDS         = "130"
      OPERATION_UNCERTAIN              = "park"
      QUEUE_URL                        = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges"
      RETENTION_SECONDS                = "345600"
      TTL_WINDOW_DAYS                  = "30"
      VISIBILITY_TIMEOUT_SECONDS       = "360"
    })
    error_message = "settings are ${jsonencode(local.settings)}"
  }

  assert {
    condition = jsonencode(jsondecode(local.settings.OPERATION_HTTP)) == jsonencode({
      allow_http         = false
      body               = "event"
      headers            = {}
      hosts              = ["api.example.com"]
      idempotency_header = "Idempotency-Key"
      method             = "POST"
      reconcile          = null
      result             = "{status: status}"
      secret             = null
      statuses           = { completed = [], final = [], retryable = [], uncertain = [] }
      url                = "'https://api.example.com/v1/charges'"
    })
    error_message = "OPERATION_HTTP is ${local.settings.OPERATION_HTTP}"
  }

  assert {
    condition     = length(setsubtract(keys(local.settings), local.reserved_environment)) == 0
    error_message = "what the module sets is reserved"
  }

  assert {
    condition = output.alarm_names == tolist([
      "charges-conflicts", "charges-dead-letters", "charges-duration", "charges-errors", "charges-events-at-risk",
      "charges-failed", "charges-misconfigured", "charges-oldest-message", "charges-outcome-unknown",
      "charges-recursion", "charges-rejected", "charges-throttles",
    ])
    error_message = "alarm_names"
  }

  assert {
    condition = [
      output.queue_arn, output.queue_url, output.dead_letter_queue_arn, output.dead_letter_queue_url,
      output.ledger_table_name, output.function_name, output.function_arn, output.role_name, output.role_arn,
      output.log_group_name, output.dashboard_name,
      ] == [
      "arn:aws:sqs:eu-central-1:111122223333:charges",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/charges",
      "arn:aws:sqs:eu-central-1:111122223333:charges-dlq",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq",
      "charges-processed-events",
      "charges-worker",
      "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker",
      "charges-worker",
      "arn:aws:iam::111122223333:role/orders-worker",
      "/aws/lambda/charges-worker",
      "charges",
    ]
    error_message = "outputs"
  }
}

run "own_effect" {
  module {
    source = "./modules/operation"
  }

  variables {
    event     = { envelope = "sns", fingerprint = "amount", id = "order.id" }
    function  = { environment = { PROVIDER_URL = "https://api.example.com" }, handler = "mine.handler", package = "main.tf", timeout_seconds = 120 }
    http      = null
    operation = { effect_timeout_seconds = 20, max_attempts = 3, uncertain = "reconcile" }
  }

  assert {
    condition = (
      !contains(keys(local.settings), "OPERATION_HTTP") && local.settings.EVENT_FINGERPRINT == "amount" &&
      local.settings.EVENT_ID == "order.id" && local.settings.EVENT_ENVELOPE == "sns"
    )
    error_message = "no call is described, and the event is"
  }

  assert {
    condition = [for name in ["OPERATION_LEASE_MS", "OPERATION_SETTLE_SECONDS", "MAX_RECEIVE_COUNT", "VISIBILITY_TIMEOUT_SECONDS"] : local.settings[name]] == [
      "240000", "140", "11", "720",
    ]
    error_message = "the defaults follow from the timeouts and the attempts"
  }
}

# "" stands for what null cannot say.
run "call_with_everything_set" {
  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      body               = ""
      headers            = { X-Order = "event.id" }
      hosts              = ["API.example.com.", "status.example.com:8443"]
      idempotency_header = ""
      method             = "DELETE"
      reconcile = {
        applied              = "status == `200` && body.state != 'void'"
        headers              = { Accept = "'application/json'" }
        not_applied_statuses = [404, 410]
        result               = "body.id"
        url                  = "['https://status.example.com:8443/v1/charges', key]"
      }
      result = "body.id"
      secret = {
        header          = "X-Api-Key"
        json_key        = "token"
        max_age_seconds = 86400
        parameter_arn   = "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token"
        prefix          = ""
      }
      statuses = { completed = [409], final = [403], retryable = [503], uncertain = [100, 429] }
      url      = "['https://api.example.com:443/v1/charges', event.id, key]"
    }
    operation = { uncertain = "provider_key" }
  }

  assert {
    condition = jsonencode(jsondecode(local.settings.OPERATION_HTTP)) == jsonencode({
      allow_http         = false
      body               = null
      headers            = { X-Order = "event.id" }
      hosts              = ["API.example.com.", "status.example.com:8443"]
      idempotency_header = null
      method             = "DELETE"
      reconcile = {
        applied              = "status == `200` && body.state != 'void'"
        headers              = { Accept = "'application/json'" }
        not_applied_statuses = [404, 410]
        result               = "body.id"
        url                  = "['https://status.example.com:8443/v1/charges', key]"
      }
      result = "body.id"
      secret = {
        header          = "X-Api-Key"
        json_key        = "token"
        max_age_seconds = 86400
        parameter_arn   = "arn:aws:ssm:eu-central-1:111122223333:parameter/payments/token"
        prefix          = ""
        secret_arn      = null
      }
      statuses = { completed = [409], final = [403], retryable = [503], uncertain = [100, 429] }
      url      = "['https://api.example.com:443/v1/charges', event.id, key]"
    })
    error_message = "OPERATION_HTTP is ${local.settings.OPERATION_HTTP}"
  }
}

run "times_at_their_edges" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    batch_size = 1
    function   = { timeout_seconds = 17 }
    operation  = { effect_timeout_seconds = 1, lease_ms = 137000, max_age_seconds = 60, max_attempts = 1, retry_seconds = 1, settle_seconds = 0 }
    queue      = { max_receive_count = 3 }
  }

  assert {
    condition     = [for name in ["OPERATION_LEASE_MS", "OPERATION_SETTLE_SECONDS", "OPERATION_MAX_ATTEMPTS"] : local.settings[name]] == ["137000", "0", "1"]
    error_message = "the least is taken"
  }
}

run "times_at_their_other_edges" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    batch_size = 1
    function   = { timeout_seconds = 900 }
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "event.url" }
      url       = "event.url"
    }
    # 25 receives of 12 hours each; lease and settling are half of the retention, and end one second before the age does.
    operation = { effect_timeout_seconds = 884, lease_ms = 43200000, max_age_seconds = 604801, max_attempts = 10, retry_seconds = 39600, settle_seconds = 561600, uncertain = "reconcile" }
    queue     = { dead_letter_retention_days = 14, fifo = true, retention_days = 14 }
  }

  assert {
    condition     = [for name in ["OPERATION_EFFECT_TIMEOUT_SECONDS", "OPERATION_LEASE_MS", "MAX_RECEIVE_COUNT"] : local.settings[name]] == ["884", "43200000", "25"]
    error_message = "the most is taken"
  }
}

run "greatest_age_and_settling_that_is_not_used" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 1209600, settle_seconds = 1209600 }
  }

  assert {
    condition     = local.settings.OPERATION_SETTLE_SECONDS == "1209600"
    error_message = "settling counts with reconcile only"
  }
}

run "retry_one_second_before_the_greatest_age" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 61, max_attempts = 2, retry_seconds = 60 }
  }

  assert {
    condition     = local.settings.OPERATION_RETRY_SECONDS == "60"
    error_message = "the second attempt can be made"
  }
}

run "single_attempt_without_a_retry" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { max_age_seconds = 60, max_attempts = 1, retry_seconds = 60 }
  }

  assert {
    condition     = local.settings.OPERATION_MAX_ATTEMPTS == "1"
    error_message = "its wait is of no use"
  }
}

run "lease_that_ends_before_the_greatest_age" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    operation = { lease_ms = 180999, max_age_seconds = 181, uncertain = "provider_key" }
  }

  assert {
    condition     = local.settings.OPERATION_LEASE_MS == "180999"
    error_message = "the attempt can be repeated"
  }
}

run "settling_that_ends_before_the_greatest_age" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function  = { handler = "mine.handler", package = "main.tf" }
    http      = null
    operation = { max_age_seconds = 311, uncertain = "reconcile" }
  }

  assert {
    condition     = local.settings.OPERATION_SETTLE_SECONDS == "130"
    error_message = "the attempt can be repeated"
  }
}

run "settling_of_half_of_the_retention" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "status == `200`", url = "event.url" }
      url       = "event.url"
    }
    operation = { max_age_seconds = 172801, settle_seconds = 172620, uncertain = "reconcile" }
  }

  assert {
    condition     = 2 * (local.lease_ms / 1000 + local.settle_seconds) == local.retention_seconds
    error_message = "it is half"
  }
}

# What cannot be read from here is left to the function, which checks each address before it calls it.
run "addresses_that_are_taken" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      allow_http = true
      hosts      = ["127.0.0.1:8080", "_internal.example.com", "xn--bcher-kva.example:65535"]
      reconcile  = { applied = "`true`", not_applied_statuses = [], url = "  [ 'HTTPS://_Internal.example.com.:443/charges', key]" }
      url        = "'http://127.0.0.1:8080/charges'"
    }
  }

  assert {
    condition     = jsondecode(local.settings.OPERATION_HTTP).allow_http
    error_message = "addresses without TLS are taken"
  }
}

run "address_of_every_character_that_it_may_have" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "`true`", url = "['https://api.example.com?a=b/../c//d'] " }
      url       = "'https://api.example.com/AZaz09._~!$&()*+,;=:@\\'-%C3%BC/...?/?AZaz09._~!$&()*+,;=:@\\'-%20'"
    }
  }

  assert {
    condition     = endswith(var.http.url, "-%20'")
    error_message = "no character is left out"
  }
}

# A field may be named like an address, and the event may bring the address.
run "addresses_that_are_not_written_out" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      hosts     = ["api.example.com"]
      reconcile = { applied = "`true`", url = "[event.https, 'v 1#x', key]" }
      url       = "event.\"https://api.example.com/url\""
    }
  }

  assert {
    condition     = local.settings.OPERATION_UNCERTAIN == "park"
    error_message = "the event has the address"
  }
}

run "ports_of_a_scheme" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      allow_http = true
      hosts      = ["api.example.com:80", "status.example.com"]
      reconcile  = { applied = "`true`", url = "'http://status.example.com:80/charges'" }
      url        = "['HTTP://API.example.com./charges', key]"
    }
  }

  assert {
    condition     = jsondecode(local.settings.OPERATION_HTTP).hosts == ["api.example.com:80", "status.example.com"]
    error_message = "80 is the port without TLS"
  }
}

run "names_of_the_greatest_length" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http = {
      headers   = { HHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHHH = "event.id" }
      hosts     = ["aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb.ccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc.ddddddddddddddddddddddddddddddddddddddddddddddddddddddddddddd.:65535"]
      reconcile = { applied = "`true`", headers = { for n in range(50) : "X-${n}" => "key" }, url = "event.url" }
      secret = {
        header     = "SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS"
        json_key   = " a"
        secret_arn = "arn:aws-iso-b:secretsmanager:us-isob-east-1:111122223333:secret:events!connection/orders-Ab12Cd"
      }
      url = "event.url"
    }
  }

  assert {
    condition     = length(jsondecode(local.settings.OPERATION_HTTP).reconcile.headers) == 50
    error_message = "the most is taken"
  }
}

run "key_that_a_path_sends" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    http      = { body = "{reference: key, amount: event.amount}", hosts = ["api.example.com"], idempotency_header = "", url = "event.url" }
    operation = { uncertain = "provider_key" }
  }

  assert {
    condition     = jsondecode(local.settings.OPERATION_HTTP).idempotency_header == null
    error_message = "no header is needed then"
  }
}

# A layer's handler calls the shipped one, as those of monitoring services do.
run "handler_of_a_layer" {
  command = plan

  module {
    source = "./modules/operation"
  }

  variables {
    function = { handler = "monitor.handler", layers = ["arn:aws:lambda:eu-central-1:111122223333:layer:monitor:1"] }
  }

  assert {
    condition     = var.function.package == null
    error_message = "the shipped zip runs"
  }
}
