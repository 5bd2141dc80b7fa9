# modules/reconciler: the function, its log group, and its schedule. The rights of its two roles are in tests/plan/test_iam.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

override_resource {
  target = aws_iam_role.schedule
  values = { arn = "arn:aws:iam::111122223333:role/orders-schedule" }
}

override_resource {
  target = aws_lambda_function.reconciler
  values = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:orders-reconciler" }
}

variables {
  consumer_name      = "orders"
  environment        = { CONSUMER_NAME = "orders" }
  function           = { architecture = "arm64", permissions_boundary = null, runtime = "python3.13", vpc = null }
  ledger_table_arn   = "arn:aws:dynamodb:eu-central-1:111122223333:table/orders-processed-events"
  log_retention_days = 30
  reconciler         = { interval_minutes = 5, memory_mb = 512, policy_documents = [], timeout_seconds = 60 }
  topic_arns         = []
}

run "default_reconciler" {
  module {
    source = "./modules/reconciler"
  }

  assert {
    condition = (
      aws_lambda_function.reconciler.function_name == "orders-reconciler" &&
      aws_lambda_function.reconciler.handler == "idempotent_consumer.reconciler.handler" &&
      aws_lambda_function.reconciler.runtime == "python3.13" &&
      aws_lambda_function.reconciler.architectures == tolist(["arm64"]) &&
      aws_lambda_function.reconciler.memory_size == 512 &&
      aws_lambda_function.reconciler.timeout == 60 &&
      aws_lambda_function.reconciler.environment[0].variables == tomap({ CONSUMER_NAME = "orders" })
    )
    error_message = "function"
  }

  assert {
    condition = (
      endswith(aws_lambda_function.reconciler.filename, "/lambda/dist/idempotent-consumer.zip") &&
      aws_lambda_function.reconciler.source_code_hash == filebase64sha256("lambda/dist/idempotent-consumer.zip")
    )
    error_message = "the zip that comes with the module"
  }

  assert {
    condition = (
      aws_lambda_function.reconciler.tracing_config[0].mode == "Active" &&
      aws_lambda_function.reconciler.logging_config[0].log_format == "JSON" &&
      aws_lambda_function.reconciler.logging_config[0].application_log_level == "INFO" &&
      aws_lambda_function.reconciler.logging_config[0].log_group == "/aws/lambda/orders-reconciler"
    )
    error_message = "traces, and metrics as lines of level INFO"
  }

  assert {
    condition     = aws_cloudwatch_log_group.reconciler.name == "/aws/lambda/orders-reconciler" && aws_cloudwatch_log_group.reconciler.retention_in_days == 30
    error_message = "log group"
  }

  assert {
    condition = (
      aws_scheduler_schedule.reconciler.name == "orders-reconciler" &&
      aws_scheduler_schedule.reconciler.schedule_expression == "rate(5 minutes)" &&
      aws_scheduler_schedule.reconciler.flexible_time_window[0].mode == "OFF" &&
      aws_scheduler_schedule.reconciler.target[0].arn == "arn:aws:lambda:eu-central-1:111122223333:function:orders-reconciler" &&
      aws_scheduler_schedule.reconciler.target[0].role_arn == "arn:aws:iam::111122223333:role/orders-schedule"
    )
    error_message = "schedule"
  }

  # The scheduler's tries, and Lambda's own for what was handed over.
  assert {
    condition = (
      aws_scheduler_schedule.reconciler.target[0].retry_policy[0].maximum_retry_attempts == 0 &&
      aws_lambda_function_event_invoke_config.reconciler.function_name == "orders-reconciler" &&
      aws_lambda_function_event_invoke_config.reconciler.maximum_event_age_in_seconds == 300 &&
      aws_lambda_function_event_invoke_config.reconciler.maximum_retry_attempts == 0
    )
    error_message = "a failed run is not tried again"
  }

  assert {
    condition     = aws_iam_role.reconciler.name == "orders-reconciler" && aws_iam_role.schedule.name == "orders-schedule"
    error_message = "roles"
  }

  assert {
    condition     = length(aws_lambda_function.reconciler.vpc_config) == 0 && length(aws_iam_role_policy.additional) == 0
    error_message = "nothing more"
  }

  assert {
    condition     = output.function_name == "orders-reconciler"
    error_message = "outputs"
  }
}

run "reconciler_once_a_day" {
  command = plan

  module {
    source = "./modules/reconciler"
  }

  variables {
    reconciler = { interval_minutes = 1440, memory_mb = 512, policy_documents = [], timeout_seconds = 60 }
  }

  # Six hours is what Lambda takes.
  assert {
    condition = (
      aws_scheduler_schedule.reconciler.schedule_expression == "rate(1440 minutes)" &&
      aws_lambda_function_event_invoke_config.reconciler.maximum_event_age_in_seconds == 21600
    )
    error_message = "schedule is ${aws_scheduler_schedule.reconciler.schedule_expression}"
  }
}

run "reconciler_with_everything_set" {
  module {
    source = "./modules/reconciler"
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"

    function = {
      architecture         = "x86_64"
      permissions_boundary = "arn:aws:iam::111122223333:policy/boundary"
      runtime              = "python3.12"
      vpc                  = { security_group_ids = ["sg-1"], subnet_ids = ["subnet-1", "subnet-2"] }
    }

    reconciler = {
      interval_minutes = 1
      memory_mb        = 256
      policy_documents = ["{\"Statement\":[],\"Version\":\"2012-10-17\"}"]
      timeout_seconds  = 45
    }
  }

  assert {
    condition = (
      aws_lambda_function.reconciler.architectures == tolist(["x86_64"]) &&
      aws_lambda_function.reconciler.runtime == "python3.12" &&
      aws_lambda_function.reconciler.memory_size == 256 &&
      aws_lambda_function.reconciler.timeout == 45
    )
    error_message = "function"
  }

  # The scheduler refuses "1 minutes".
  assert {
    condition     = aws_scheduler_schedule.reconciler.schedule_expression == "rate(1 minute)"
    error_message = "schedule is ${aws_scheduler_schedule.reconciler.schedule_expression}"
  }

  assert {
    condition = (
      aws_lambda_function.reconciler.vpc_config[0].subnet_ids == toset(["subnet-1", "subnet-2"]) &&
      aws_lambda_function.reconciler.vpc_config[0].security_group_ids == toset(["sg-1"])
    )
    error_message = "vpc"
  }

  assert {
    condition = (
      aws_lambda_function.reconciler.kms_key_arn == var.kms_key_arn && aws_cloudwatch_log_group.reconciler.kms_key_id == var.kms_key_arn
    )
    error_message = "the key encrypts the environment and the log"
  }

  assert {
    condition = (
      aws_iam_role.reconciler.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary" &&
      aws_iam_role.schedule.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary" &&
      aws_iam_role_policy.additional[0].policy == "{\"Statement\":[],\"Version\":\"2012-10-17\"}"
    )
    error_message = "roles"
  }
}
