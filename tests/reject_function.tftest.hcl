# What modules/function refuses: as tests/reject.tftest.hcl for the root module.

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

# The function's variables are at least 4097 bytes of JSON, but Lambda takes at most 4096: shorten function.environment, or the paths that are set (JMESPath).
run "reject_environment_of_4097_bytes" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    environment = { CONSUMER_NAME = "orders", EVENT_ITEM = format("%4055s", "x") }
  }

  expect_failures = [aws_lambda_function.worker]
}

# The function's variables are at least 4098 bytes of JSON, but Lambda takes at most 4096: shorten function.environment, or the paths that are set (JMESPath).
run "reject_environment_of_2028_characters_of_two_bytes" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    environment = { CONSUMER_NAME = "orders", EVENT_ITEM = replace(format("%2028s", " "), " ", "é") }
  }

  expect_failures = [aws_lambda_function.worker]
}

# The function's variables are at least 4097 bytes of JSON, but Lambda takes at most 4096: shorten function.environment, or the paths that are set (JMESPath).
run "reject_environment_that_is_too_long_with_the_queues_address" {
  command = plan

  module {
    source = "./modules/function"
  }

  variables {
    environment = { DEAD_LETTER_QUEUE_URL = "https://sqs.eu-central-1.amazonaws.com/111122223333/orders-dlq", EVENT_ITEM = format("%3991s", "x") }
  }

  expect_failures = [aws_lambda_function.worker]
}
