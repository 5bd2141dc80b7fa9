# modules/function: the function, its log group, and how it reads the queue. Its rights are in tests/plan/test_iam.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  environment        = { CONSUMER_NAME = "orders" }
  log_retention_days = 30
  name               = "orders-worker"
  rights             = []
  shipped_handler    = "idempotent_consumer.handler.handler"

  intake = {
    batch_size            = 10
    dead_letter_queue_arn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
    queue_arn             = "arn:aws:sqs:eu-central-1:111122223333:orders"
  }

  function = {
    architecture         = "arm64"
    memory_mb            = 512
    permissions_boundary = null
    runtime              = "python3.13"
    timeout_seconds      = 30
    vpc                  = null
  }
}

run "default_function" {
  module {
    source = "./modules/function"
  }

  assert {
    condition = (
      aws_lambda_function.worker.function_name == "orders-worker" &&
      aws_lambda_function.worker.handler == "idempotent_consumer.handler.handler" &&
      aws_lambda_function.worker.runtime == "python3.13" &&
      aws_lambda_function.worker.architectures == tolist(["arm64"]) &&
      aws_lambda_function.worker.memory_size == 512 &&
      aws_lambda_function.worker.timeout == 30 &&
      !aws_lambda_function.worker.publish
    )
    error_message = "function"
  }

  assert {
    condition = (
      endswith(aws_lambda_function.worker.filename, "/lambda/dist/idempotent-consumer.zip") &&
      aws_lambda_function.worker.source_code_hash == filebase64sha256("lambda/dist/idempotent-consumer.zip")
    )
    error_message = "the zip that comes with the module"
  }

  assert {
    condition     = aws_lambda_function.worker.environment[0].variables == tomap({ CONSUMER_NAME = "orders" })
    error_message = "environment"
  }

  assert {
    condition     = aws_lambda_function.worker.tracing_config[0].mode == "Active"
    error_message = "tracing"
  }

  assert {
    condition = (
      aws_lambda_function.worker.logging_config[0].log_format == "JSON" &&
      aws_lambda_function.worker.logging_config[0].application_log_level == "INFO" &&
      aws_lambda_function.worker.logging_config[0].log_group == "/aws/lambda/orders-worker"
    )
    error_message = "the metrics are lines of level INFO"
  }

  assert {
    condition     = aws_cloudwatch_log_group.worker.name == "/aws/lambda/orders-worker" && aws_cloudwatch_log_group.worker.retention_in_days == 30
    error_message = "log group"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.intake[0].event_source_arn == "arn:aws:sqs:eu-central-1:111122223333:orders" &&
      aws_lambda_event_source_mapping.intake[0].function_name == "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker" &&
      aws_lambda_event_source_mapping.intake[0].function_response_types == toset(["ReportBatchItemFailures"]) &&
      aws_lambda_event_source_mapping.intake[0].batch_size == 10 &&
      aws_lambda_event_source_mapping.intake[0].enabled
    )
    error_message = "mapping"
  }

  # A FIFO queue takes no window, not even 0; no limit is no block.
  assert {
    condition = (
      aws_lambda_event_source_mapping.intake[0].maximum_batching_window_in_seconds == null &&
      length(aws_lambda_event_source_mapping.intake[0].scaling_config) == 0
    )
    error_message = "what is not set is left out"
  }

  assert {
    condition     = length(aws_lambda_alias.live) == 0 && length(aws_iam_role_policy.additional) == 0
    error_message = "nothing more"
  }
}

# A package brings its own; the shipped one is its caller's to name.
run "function_of_another_shipped_handler" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    rights          = [{ sid = "ClaimInLedger", actions = ["dynamodb:UpdateItem"], resources = ["arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events"] }]
    shipped_handler = "idempotent_consumer.http_operation.handler"
  }

  assert {
    condition     = aws_lambda_function.worker.handler == "idempotent_consumer.http_operation.handler"
    error_message = "handler"
  }

  assert {
    condition = [for statement in data.aws_iam_policy_document.worker.statement : statement.sid if !contains(["ReadIntake", "DeadLetter", "Log", "Trace"], statement.sid)] == [
      "ClaimInLedger",
    ]
    error_message = "the rights that the caller gives are statements of the policy"
  }
}

# What is invoked instead, as a workflow's guard is.
run "function_that_reads_no_queue" {
  module {
    source = "./modules/function"
  }

  variables {
    intake          = null
    name            = "orders-guard"
    rights          = [{ sid = "Claim", actions = ["dynamodb:UpdateItem"], resources = ["arn:aws:dynamodb:eu-central-1:111122223333:table/orders-idempotency"] }]
    shipped_handler = "idempotent_consumer.guard.handler"
  }

  assert {
    condition     = length(aws_lambda_event_source_mapping.intake) == 0
    error_message = "no mapping"
  }

  assert {
    condition     = [for statement in data.aws_iam_policy_document.worker.statement : statement.sid] == ["Claim", "Log", "Trace"]
    error_message = "neither a queue to read nor one for dead letters"
  }

  assert {
    condition = (
      aws_lambda_function.worker.function_name == "orders-guard" && aws_lambda_function.worker.handler == "idempotent_consumer.guard.handler" &&
      aws_iam_role.worker.name == "orders-guard" && aws_cloudwatch_log_group.worker.name == "/aws/lambda/orders-guard"
    )
    error_message = "all else is as with a queue"
  }
}

run "function_with_everything_set" {
  module {
    source = "./modules/function"
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    intake = {
      batch_size            = 500
      dead_letter_queue_arn = "arn:aws:sqs:eu-central-1:111122223333:orders-dlq"
      queue_arn             = "arn:aws:sqs:eu-central-1:111122223333:orders"
    }

    function = {
      architecture            = "x86_64"
      batching_window_seconds = 20
      enabled                 = false
      handler                 = "mine.handler"
      layers                  = ["arn:aws:lambda:eu-central-1:111122223333:layer:tools:3"]
      maximum_concurrency     = 5
      memory_mb               = 1024
      package                 = "tests/contracts_function.tftest.hcl" # any file
      permissions_boundary    = "arn:aws:iam::111122223333:policy/boundary"
      policy_documents        = ["{\"Statement\":[],\"Version\":\"2012-10-17\"}"]
      reserved_concurrency    = 6
      runtime                 = "python3.12"
      snap_start              = true
      timeout_seconds         = 60
      vpc                     = { security_group_ids = ["sg-1"], subnet_ids = ["subnet-1", "subnet-2"] }
    }
  }

  # Only a published version is a snapshot, and only an alias follows the newest one.
  assert {
    condition = (
      aws_lambda_function.worker.publish && aws_lambda_function.worker.snap_start[0].apply_on == "PublishedVersions" &&
      aws_lambda_alias.live[0].function_version == "7" &&
      aws_lambda_event_source_mapping.intake[0].function_name == "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker:live"
    )
    error_message = "the mapping calls the alias"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.intake[0].batch_size == 500 && !aws_lambda_event_source_mapping.intake[0].enabled &&
      aws_lambda_event_source_mapping.intake[0].maximum_batching_window_in_seconds == 20 &&
      aws_lambda_event_source_mapping.intake[0].scaling_config[0].maximum_concurrency == 5
    )
    error_message = "mapping"
  }

  assert {
    condition = (
      aws_lambda_function.worker.architectures == tolist(["x86_64"]) && aws_lambda_function.worker.handler == "mine.handler" &&
      aws_lambda_function.worker.layers == tolist(var.function.layers) && aws_lambda_function.worker.memory_size == 1024 &&
      aws_lambda_function.worker.filename == "tests/contracts_function.tftest.hcl" &&
      aws_lambda_function.worker.reserved_concurrent_executions == 6 && aws_lambda_function.worker.runtime == "python3.12" &&
      aws_lambda_function.worker.timeout == 60
    )
    error_message = "function"
  }

  assert {
    condition = (
      aws_lambda_function.worker.vpc_config[0].subnet_ids == toset(["subnet-1", "subnet-2"]) &&
      aws_lambda_function.worker.vpc_config[0].security_group_ids == toset(["sg-1"])
    )
    error_message = "vpc"
  }

  assert {
    condition = (
      aws_lambda_function.worker.kms_key_arn == var.kms_key_arn && aws_cloudwatch_log_group.worker.kms_key_id == var.kms_key_arn
    )
    error_message = "the key encrypts the environment and the log"
  }

  assert {
    condition = (
      aws_iam_role.worker.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary" &&
      aws_iam_role_policy.additional[0].policy == "{\"Statement\":[],\"Version\":\"2012-10-17\"}"
    )
    error_message = "role"
  }
}

# Lambda counts the bytes of the JSON, where < > & are one byte each and a quote is two.
run "environment_of_4096_bytes" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    environment = { EVENT_ITEM = format("<&>\"%4074s", "x") }
  }

  assert {
    condition     = local.environment_bytes == 4096
    error_message = "environment is ${local.environment_bytes} bytes"
  }
}

# Of JSON within a variable, as OPERATION_HTTP is, Lambda counts each quote and backslash twice.
run "environment_with_json_in_it" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    environment = { HTTP = jsonencode("a && b") }
  }

  assert {
    condition     = local.environment_bytes == 33
    error_message = "environment is ${local.environment_bytes} bytes"
  }
}

run "reject_package_that_is_not_there" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    function = {
      architecture         = "arm64"
      handler              = "mine.handler"
      memory_mb            = 512
      package              = "nowhere.zip"
      permissions_boundary = null
      runtime              = "python3.13"
      timeout_seconds      = 30
      vpc                  = null
    }
  }

  expect_failures = [aws_lambda_function.worker]
}
