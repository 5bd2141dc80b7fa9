# modules/reconciler: what it asks of modules/function, and its schedule. The function as planned is in tests/plan/test_pipeline.py,
# the rights of the two roles in tests/plan/test_iam.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

override_resource {
  target = aws_iam_role.schedule
  values = { arn = "arn:aws:iam::111122223333:role/orders-schedule" }
}

override_resource {
  target = module.function.aws_lambda_function.worker
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
    condition = jsonencode(local.function) == jsonencode({
      architecture         = "arm64"
      memory_mb            = 512
      permissions_boundary = null
      policy_documents     = []
      runtime              = "python3.13"
      timeout_seconds      = 60
      vpc                  = null
    })
    error_message = "function is ${jsonencode(local.function)}"
  }

  assert {
    condition     = module.function.log_group_name == "/aws/lambda/orders-reconciler"
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
    condition     = module.function.role_name == "orders-reconciler" && aws_iam_role.schedule.name == "orders-schedule"
    error_message = "roles"
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
    condition = jsonencode(local.function) == jsonencode({
      architecture         = "x86_64"
      memory_mb            = 256
      permissions_boundary = "arn:aws:iam::111122223333:policy/boundary"
      policy_documents     = ["{\"Statement\":[],\"Version\":\"2012-10-17\"}"]
      runtime              = "python3.12"
      timeout_seconds      = 45
      vpc                  = { security_group_ids = ["sg-1"], subnet_ids = ["subnet-1", "subnet-2"] }
    })
    error_message = "function is ${jsonencode(local.function)}"
  }

  # The scheduler refuses "1 minutes".
  assert {
    condition     = aws_scheduler_schedule.reconciler.schedule_expression == "rate(1 minute)"
    error_message = "schedule is ${aws_scheduler_schedule.reconciler.schedule_expression}"
  }

  assert {
    condition     = aws_iam_role.schedule.permissions_boundary == "arn:aws:iam::111122223333:policy/boundary"
    error_message = "the schedule's role"
  }
}
