# modules/workflow: what it creates, what its functions are told, and what is taken at the edge of what is refused. Its roles
# are in tests/plan/test_iam.py, its state machine in tests/plan/test_workflow.py, its refusals in
# tests/reject_workflow.tftest.hcl.

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

override_resource {
  target = aws_dynamodb_table.idempotency
  values = { arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/charges-idempotency" }
}

override_resource {
  target = aws_iam_role.workflow
  values = { arn = "arn:aws:iam::111122223333:role/charges-workflow" }
}

override_resource {
  target = aws_sfn_state_machine.workflow
  values = { arn = "arn:aws:states:eu-central-1:111122223333:stateMachine:charges" }
}

override_resource {
  target = aws_cloudwatch_log_group.workflow
  values = { arn = "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/vendedlogs/states/charges" }
}

variables {
  name   = "charges"
  effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" } }
}

run "shortest_block" {
  module {
    source = "./modules/workflow"
  }

  assert {
    condition = tomap(local.starter_settings) == tomap({
      BACKOFF_MAX_SECONDS        = "900"
      CONSUMER_NAME              = "charges"
      DEAD_LETTER_QUEUE_URL      = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq"
      EVENT_ENVELOPE             = "raw"
      IDEMPOTENCY_TABLE          = "charges-idempotency"
      MAX_RECEIVE_COUNT          = "5"
      QUEUE_URL                  = "https://sqs.eu-central-1.amazonaws.com/111122223333/charges"
      RETENTION_SECONDS          = "345600"
      STATE_MACHINE_ARN          = "arn:aws:states:eu-central-1:111122223333:stateMachine:charges"
      VISIBILITY_TIMEOUT_SECONDS = "180"
      WORKFLOW_NAMESPACE         = "ingestion"
      WORKFLOW_RETENTION_SECONDS = "1555200"
    })
    error_message = "the starter's settings are ${jsonencode(local.starter_settings)}"
  }

  assert {
    condition     = tomap(local.guard_settings) == tomap({ CONSUMER_NAME = "charges", IDEMPOTENCY_TABLE = "charges-idempotency" })
    error_message = "the guard's settings are ${jsonencode(local.guard_settings)}"
  }

  assert {
    condition     = length(setsubtract(keys(local.starter_settings), local.reserved_environment)) == 0
    error_message = "what the module sets is reserved"
  }

  assert {
    condition     = toset(local.own_states) == toset(concat(keys(jsondecode(local.definition).States), ["Look up claim"]))
    error_message = "the states are ${jsonencode(keys(jsondecode(local.definition).States))}"
  }

  assert {
    condition = [
      aws_sfn_state_machine.workflow.definition == local.definition,
      aws_sfn_state_machine.workflow.role_arn,
      aws_sfn_state_machine.workflow.logging_configuration[0].log_destination,
      ] == [
      true,
      "arn:aws:iam::111122223333:role/charges-workflow",
      "arn:aws:logs:eu-central-1:111122223333:log-group:/aws/vendedlogs/states/charges:*",
    ]
    error_message = "the state machine is the one that is defined, with its own role and log"
  }

  # What the module has dead-lettered itself is left out.
  assert {
    condition = jsonencode(jsondecode(aws_cloudwatch_event_rule.failure.event_pattern)) == jsonencode({
      detail = {
        "$or" = [
          { status = ["ABORTED", "TIMED_OUT"] },
          { error = [null, { exists = false }, { anything-but = { prefix = "IdempotentConsumer." } }], status = ["FAILED"] },
        ]
        stateMachineArn = ["arn:aws:states:eu-central-1:111122223333:stateMachine:charges"]
      }
      detail-type = ["Step Functions Execution Status Change"]
      source      = ["aws.states"]
    })
    error_message = "the pattern is ${aws_cloudwatch_event_rule.failure.event_pattern}"
  }

  assert {
    condition = [
      aws_cloudwatch_event_target.failure.arn, aws_cloudwatch_event_target.failure.rule, aws_sqs_queue_policy.dead_letter.queue_url,
      ] == [
      "arn:aws:sqs:eu-central-1:111122223333:charges-dlq", "charges-failures",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq",
    ]
    error_message = "failures go to the dead-letter queue, whose policy lets them"
  }

  assert {
    condition = [
      output.queue_arn, output.queue_url, output.dead_letter_queue_arn, output.dead_letter_queue_url,
      output.idempotency_table_name, output.idempotency_table_arn, output.state_machine_name, output.state_machine_arn,
      output.function_name, output.function_arn, output.guard_function_name, output.guard_function_arn, output.role_name,
      output.role_arn, output.workflow_role_name, output.workflow_role_arn, output.log_group_name,
      output.workflow_log_group_name, output.failure_rule_name, output.dashboard_name,
      ] == [
      "arn:aws:sqs:eu-central-1:111122223333:charges",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/charges",
      "arn:aws:sqs:eu-central-1:111122223333:charges-dlq",
      "https://sqs.eu-central-1.amazonaws.com/111122223333/charges-dlq",
      "charges-idempotency",
      "arn:aws:dynamodb:eu-central-1:111122223333:table/charges-idempotency",
      "charges",
      "arn:aws:states:eu-central-1:111122223333:stateMachine:charges",
      "charges-worker",
      "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker",
      "charges-guard",
      "arn:aws:lambda:eu-central-1:111122223333:function:orders-worker",
      "charges-worker",
      "arn:aws:iam::111122223333:role/orders-worker",
      "charges-workflow",
      "arn:aws:iam::111122223333:role/charges-workflow",
      "/aws/lambda/charges-worker",
      "/aws/vendedlogs/states/charges",
      "charges-failures",
      "charges",
    ]
    error_message = "outputs"
  }
}

run "direct_guard" {
  module {
    source = "./modules/workflow"
  }

  variables {
    guard = "direct"
  }

  assert {
    condition     = output.guard_function_name == null && output.guard_function_arn == null && contains(keys(jsondecode(local.definition).States), "Look up claim")
    error_message = "there is no function"
  }
}

run "event_with_a_key_of_its_own" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    event     = { envelope = "sns", fingerprint = "amount", id = "order.id" }
    namespace = "payments"
  }

  assert {
    condition     = [for name in ["EVENT_ENVELOPE", "EVENT_FINGERPRINT", "EVENT_ID", "WORKFLOW_NAMESPACE"] : local.starter_settings[name]] == ["sns", "amount", "order.id", "payments"]
    error_message = "the starter is told"
  }
}

run "alias_of_a_function" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge:live" } }
  }

  assert {
    condition     = var.effect.function.arn != null
    error_message = "an alias is taken"
  }
}

run "version_of_a_function_in_another_partition" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws-cn:lambda:cn-north-1:111122223333:function:charge:$LATEST" } }
  }

  assert {
    condition     = var.effect.function.arn != null
    error_message = "a version is taken"
  }
}

# The retention is that of both queues, in whole seconds.
run "least_of_everything" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    batch_size        = 1
    effect            = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, max_attempts = 1, timeout_seconds = 1 }
    function          = { timeout_seconds = 10 }
    guard_function    = { memory_mb = 128, timeout_seconds = 10 }
    namespace         = "n"
    queue             = { dead_letter_retention_days = 4.001, max_receive_count = 3 }
    retention_seconds = 691287
  }

  assert {
    condition     = local.retention_seconds == 691287
    error_message = "the least is taken"
  }
}

run "most_of_everything" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    batch_size        = 10000
    effect            = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, max_attempts = 100, not_applied_errors = ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"], timeout_seconds = 99999999 }
    function          = { batching_window_seconds = 300, timeout_seconds = 900 }
    guard_function    = { memory_mb = 10240, timeout_seconds = 55 }
    namespace         = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
    retention_seconds = 316224000
  }

  assert {
    condition     = local.retention_seconds == 316224000
    error_message = "the most is taken"
  }
}

run "default_retention_one_second_above_the_effects_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 1555199 }
  }

  assert {
    condition     = local.retention_seconds == 1555200
    error_message = "it is that of both queues"
  }
}

# What Lambda says of a function counts in any case.
run "effect_with_a_certain_error_of_its_own" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = {
      function           = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }
      not_applied_errors = ["NotSent", "Lambda.TooManyRequestsException"]
    }
  }

  assert {
    condition     = local.not_applied_errors == tolist(["Lambda.ResourceNotFoundException", "Lambda.TooManyRequestsException", "NotSent"])
    error_message = "the certain errors are ${jsonencode(local.not_applied_errors)}"
  }
}

run "namespace_of_every_character_that_it_may_have" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = " !#$%&()*+,-./0123456789:;<=>?@ABCXYZ[]^_`abcxyz|~"
  }

  assert {
    condition     = startswith(var.namespace, " !")
    error_message = "no character is left out"
  }
}

# What a Parallel, Map or old Map state has within it is taken as it is.
run "fragment_with_each_type_of_state" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = {
      not_applied_errors = ["Refused", "Lambda.TooManyRequestsException"]
      fragment = jsonencode({
        Comment       = "All that a fragment may have."
        QueryLanguage = "JSONPath"
        StartAt       = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
        States = {
          nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn = { Type = "Choice", Choices = [{ Variable = "$.key", IsPresent = true, Next = "Wait" }], Default = "Refuse" }
          Wait                                                                             = { Type = "Wait", Seconds = 1, Next = "Do" }
          Do = {
            Type     = "Task"
            Resource = "arn:aws:states:::sns:publish"
            Catch    = [{ ErrorEquals = ["States.ALL"], Next = "Done" }]
            Next     = "Both"
          }
          Both = {
            Type     = "Parallel"
            Branches = [{ StartAt = "Left", States = { Left = { Type = "Pass", End = true } } }, { StartAt = "Right", States = { Right = { Type = "Succeed" } } }]
            Next     = "Each"
          }
          Each = {
            Type          = "Map"
            ItemProcessor = { StartAt = "One", States = { One = { Type = "Pass", QueryLanguage = "JSONata", End = true } } }
            Next          = "Old"
          }
          Old    = { Type = "Map", Iterator = { StartAt = "Another", States = { Another = { Type = "Pass", End = true } } }, Next = "Noted" }
          Noted  = { Type = "Pass", QueryLanguage = "JSONata", Output = "{% $states.input %}", Next = "Done" }
          Done   = { Type = "Succeed" }
          Refuse = { Type = "Fail", Error = "Refused" }
        }
      })
    }
  }

  assert {
    condition     = length(local.fragment_states) == 9 && local.fragment_states["Noted"].QueryLanguage == "JSONata" && local.fragment_states["Wait"].QueryLanguage == "JSONPath"
    error_message = "all states are taken"
  }
}

run "fragment_in_jsonata_whose_inner_states_say_so" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = {
      fragment = jsonencode({
        QueryLanguage = "JSONata"
        StartAt       = "Each"
        States = {
          Each = {
            Type          = "Map"
            ItemProcessor = { StartAt = "One", States = { One = { Type = "Pass", QueryLanguage = "JSONata", End = true } } }
            End           = true
          }
        }
      })
    }
  }

  assert {
    condition     = local.fragment_states["Each"].QueryLanguage == "JSONata"
    error_message = "the outer state is told"
  }
}

run "fragment_that_runs_longer_than_the_effects_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = {
      fragment        = jsonencode({ StartAt = "Done", States = { Done = { Type = "Succeed" } } })
      timeout_seconds = 99999999
    }
  }

  assert {
    condition     = local.retention_seconds == 1555200
    error_message = "the time is a function's alone"
  }
}
