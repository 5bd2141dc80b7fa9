# What modules/workflow refuses beyond the root module: as tests/reject.tftest.hcl. What both refuse in the same words is
# tried in tests/plan/test_refusals.py.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"
}

variables {
  name   = "charges"
  effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" } }
}

# --- The effect: a function, or states of your own.

# effect.function is null and effect.fragment is null: give one of the two, function for a Lambda function or fragment for states of your own.
run "reject_no_effect_of_a_workflow" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = {}
  }

  expect_failures = [var.effect]
}

# effect.function is set and effect.fragment is set: give one of the two, function for a Lambda function or fragment for states of your own.
run "reject_two_effects_of_a_workflow" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.function.arn is "charge", but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>].
run "reject_function_by_its_name" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "charge" } }
  }

  expect_failures = [var.effect]
}

# effect.function.arn is "arn:aws:states:eu-central-1:111122223333:stateMachine:charge", but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>].
run "reject_function_of_another_service" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:states:eu-central-1:111122223333:stateMachine:charge" } }
  }

  expect_failures = [var.effect]
}

# effect.function.arn is "arn:aws:lambda:eu-central-1:111122223333:layer:tools:1", but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>].
run "reject_function_that_is_a_layer" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:layer:tools:1" } }
  }

  expect_failures = [var.effect]
}

# effect.function.arn is "arn:aws:lambda:eu-central-1:111122223333:function:charge:", but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>].
run "reject_function_with_a_blank_alias" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge:" } }
  }

  expect_failures = [var.effect]
}

# effect.function.arn is null, but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>].
run "reject_function_without_an_arn" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = null } }
  }

  expect_failures = [var.effect]
}

# --- The fragment.

# effect.fragment is "StartAt: Charge" …, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_that_is_no_json" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = "StartAt: Charge" }
  }

  expect_failures = [var.effect]
}

# effect.fragment is "null" …, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_that_is_null_in_json" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = "null" }
  }

  expect_failures = [var.effect]
}

# effect.fragment is "[]" …, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_that_is_a_list" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = "[]" }
  }

  expect_failures = [var.effect]
}

# effect.fragment is JSON with StartAt, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_without_states" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge" }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment is JSON with StartAt, States, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_with_a_list_of_states" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = [{ Type = "Succeed" }] }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment is JSON with StartAt, States, TimeoutSeconds, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them.
run "reject_fragment_with_a_timeout" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Succeed" } }, TimeoutSeconds = 60 }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has StartAt "Charge", but must begin at one of its states, [].
run "reject_fragment_of_no_states" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = {} }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has no StartAt, but must begin at one of its states, ["Charge"].
run "reject_fragment_without_a_start" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ States = { Charge = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has StartAt "charge", but must begin at one of its states, ["Charge","Notify"].
run "reject_fragment_that_starts_somewhere_else" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "charge", States = { Charge = { Type = "Pass", Next = "Notify" }, Notify = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has Notify of no Type, but each state must be an object with a Type: Choice, Fail, Map, Parallel, Pass, Succeed, Task or Wait.
run "reject_fragment_with_a_state_that_is_a_text" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Choice", Choices = [{ Variable = "$.paid", BooleanEquals = true, Next = "Notify" }], Default = "Done" }, Done = { Type = "Succeed" }, Notify = "Succeed" } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has Charge of no Type, but each state must be an object with a Type: Choice, Fail, Map, Parallel, Pass, Succeed, Task or Wait.
run "reject_fragment_with_a_state_without_a_type" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Next = "Notify" }, Notify = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has Charge of Type "task", but each state must be an object with a Type: Choice, Fail, Map, Parallel, Pass, Succeed, Task or Wait.
run "reject_fragment_with_a_state_of_an_unknown_type" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "task", End = true } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has Charge with neither Next nor End, but a state goes on to one (Next), or ends (End = true).
run "reject_fragment_with_a_state_that_leads_nowhere" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Choose", States = { Charge = { Type = "Pass" }, Choose = { Type = "Choice", Choices = [{ Variable = "$.paid", BooleanEquals = true, Next = "Done" }], Default = "Charge" }, Done = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has Charge with both Next and End, but a state goes on to one (Next), or ends (End = true).
run "reject_fragment_with_a_state_that_ends_and_goes_on" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Pass", End = true, Next = "Done" }, Done = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Charge","Skipped"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_state_named_as_the_modules" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Pass", Next = "Skipped" }, Skipped = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Charge","Guard"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_branch_named_as_the_modules" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Parallel", End = true, Branches = [{ StartAt = "Guard", States = { Guard = { Type = "Succeed" } } }] } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Charge","Dead letter"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_processor_named_as_the_modules" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Map", End = true, ItemProcessor = { StartAt = "Dead letter", States = { "Dead letter" = { Type = "Succeed" } } } } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Charge","Claimed?"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_an_iterator_named_as_the_modules" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Map", End = true, Iterator = { StartAt = "Claimed?", States = { "Claimed?" = { Type = "Succeed" } } } } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Charge","Charge"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_name_twice" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Map", End = true, ItemProcessor = { StartAt = "Charge", States = { Charge = { Type = "Succeed" } } } } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_name_of_81_characters" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", States = { nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states [""], but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ["Claim kept","Claimed?","Complete","Conflict","Dead letter","Effect","Extend claim","Failed","Guard","Guard failed","Look up claim","Not applied","Outcome not recorded","Outcome unknown","Park","Release","Skipped"].
run "reject_fragment_with_a_blank_name" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "", States = { "" = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the QueryLanguage "jsonata", but it is JSONPath or JSONata.
run "reject_fragment_in_another_language" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ QueryLanguage = "jsonata", StartAt = "Charge", States = { Charge = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the QueryLanguage "JSONPath", "JMESPath" in Charge, but it is JSONPath or JSONata.
run "reject_fragment_with_a_state_in_another_language" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ QueryLanguage = "JSONPath", StartAt = "Charge", States = { Charge = { Type = "Succeed", QueryLanguage = "JMESPath" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the QueryLanguage JSONata and, in Charge, states without one: these would be taken for JSONPath. Give each of them a QueryLanguage.
run "reject_fragment_with_inner_states_that_name_no_language" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ QueryLanguage = "JSONata", StartAt = "Charge", States = { Charge = { Type = "Map", End = true, ItemProcessor = { StartAt = "Notify", States = { Notify = { Type = "Succeed" } } } } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the QueryLanguage JSONata and, in Charge, states without one: these would be taken for JSONPath. Give each of them a QueryLanguage.
run "reject_fragment_with_a_branch_that_names_no_language" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ QueryLanguage = "JSONata", StartAt = "Charge", States = { Charge = { Type = "Parallel", End = true, Branches = [{ StartAt = "Notify", States = { Notify = { Type = "Succeed" } } }] } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment goes on to "Notify", but must stay within its states, ["Charge","Done"].
run "reject_fragment_that_goes_on_to_no_state" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Task", Resource = "arn:aws:states:::sns:publish", Next = "Notify", Catch = [{ ErrorEquals = ["States.ALL"], Next = "Done" }] }, Done = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment goes on to "Skipped", but must stay within its states, ["Charge"].
run "reject_fragment_that_goes_on_to_the_modules_state" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Task", Resource = "arn:aws:states:::sns:publish", End = true, Catch = [{ ErrorEquals = ["States.ALL"], Next = "Skipped" }] } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment goes on to "Paid", but must stay within its states, ["Charge","Done"].
run "reject_fragment_whose_choice_is_no_state" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Choice", Choices = [{ Variable = "$.paid", BooleanEquals = true, Next = "Paid" }], Default = "Done" }, Done = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment goes on to "Pay", but must stay within its states, ["Charge","Done"].
run "reject_fragment_whose_default_is_no_state" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Choice", Choices = [{ Variable = "$.paid", BooleanEquals = true, Next = "Done" }], Default = "Pay" }, Done = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has the states ["Notify"], but it does not start there, and nothing leads to them: AWS refuses such a state machine.
run "reject_fragment_with_a_state_that_nothing_leads_to" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Succeed" }, Notify = { Type = "Succeed" } } }) }
  }

  expect_failures = [var.effect]
}

# effect.fragment has no state with End or of Type Succeed or Fail among ["Charge","Notify"]: it could never end.
run "reject_fragment_that_never_ends" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Wait", Seconds = 60, Next = "Notify" }, Notify = { Type = "Pass", Next = "Charge" } } }) }
  }

  expect_failures = [var.effect]
}

# --- What follows from how the effect ended.

# effect.max_attempts is 0, but must be a whole number from 1 to 100.
run "reject_no_call_of_the_function" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, max_attempts = 0 }
  }

  expect_failures = [var.effect]
}

# effect.max_attempts is 101, but must be a whole number from 1 to 100.
run "reject_calls_of_the_function_over_100" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, max_attempts = 101 }
  }

  expect_failures = [var.effect]
}

# effect.max_attempts is 1.5, but must be a whole number from 1 to 100.
run "reject_half_a_call_of_the_function" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, max_attempts = 1.5 }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused"," "], but an error's name has 1 to 256 characters, not all of them blanks.
run "reject_blank_error" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", " "] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is [null], but an error's name has 1 to 256 characters, not all of them blanks.
run "reject_null_error" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = [null] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"], but an error's name has 1 to 256 characters, not all of them blanks.
run "reject_error_of_257_characters" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","States.ALL"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_that_stands_for_all" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "States.ALL"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","States.TaskFailed"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_that_stands_for_failed_tasks" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "States.TaskFailed"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","States.Timeout"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_a_timeout" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "States.Timeout"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","States.DataLimitExceeded"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_too_much_data" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "States.DataLimitExceeded"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","States.Runtime"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_the_runtime" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "States.Runtime"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Lambda.Unknown"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_a_function_that_died" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Lambda.Unknown"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Sandbox.Timedout"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_a_function_out_of_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Sandbox.Timedout"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Runtime.ExitError"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_certainty_of_a_process_that_died" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Runtime.ExitError"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Lambda.ServiceException"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_lambda_itself" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Lambda.ServiceException"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Lambda.AWSLambdaException"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_lambdas_answer" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Lambda.AWSLambdaException"] }
  }

  expect_failures = [var.effect]
}

# effect.not_applied_errors is ["Refused","Lambda.SdkClientException"], but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice.
run "reject_error_of_a_lost_answer" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, not_applied_errors = ["Refused", "Lambda.SdkClientException"] }
  }

  expect_failures = [var.effect]
}

# effect.policy_documents has no IAM policy at the positions 1: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives.
run "reject_policy_of_a_fragment_that_is_none" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { fragment = jsonencode({ StartAt = "Charge", States = { Charge = { Type = "Succeed" } } }), policy_documents = [jsonencode({ Statement = [], Version = "2012-10-17" }), "arn:aws:iam::aws:policy/AmazonSNSFullAccess"] }
  }

  expect_failures = [var.effect]
}

# effect.policy_documents has the length 1, but only effect.fragment needs them: what the function calls is its own role's. Leave them out.
run "reject_policy_with_a_function" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, policy_documents = [jsonencode({ Statement = [], Version = "2012-10-17" })] }
  }

  expect_failures = [var.effect]
}

# effect.timeout_seconds is 0, but must be a whole number from 1 to 99999999.
run "reject_effect_without_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 0 }
  }

  expect_failures = [var.effect]
}

# effect.timeout_seconds is 0.5, but must be a whole number from 1 to 99999999.
run "reject_effect_of_half_a_second" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 0.5 }
  }

  expect_failures = [var.effect]
}

# effect.timeout_seconds is 100000000, but must be a whole number from 1 to 99999999.
run "reject_effect_of_over_three_years" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect            = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 100000000 }
    retention_seconds = 316224000
  }

  expect_failures = [var.effect]
}

# --- How long a key is remembered.

# retention_seconds is 1555200.5, but must be a whole number of seconds, at most 316224000 (ten years).
run "reject_retention_of_half_a_second_more" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    retention_seconds = 1555200.5
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 316224001, but must be a whole number of seconds, at most 316224000 (ten years).
run "reject_retention_of_over_ten_years" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    retention_seconds = 316224001
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 0, below queue.retention_days (4) + queue.dead_letter_retention_days (14), in seconds 1555200: a message could come back after its key was forgotten, and its effect would be repeated. Raise retention_seconds, or lower one of the two.
run "reject_retention_of_no_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    retention_seconds = 0
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 86400, below queue.retention_days (4) + queue.dead_letter_retention_days (14), in seconds 1555200: a message could come back after its key was forgotten, and its effect would be repeated. Raise retention_seconds, or lower one of the two.
run "reject_retention_of_a_day" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    retention_seconds = 86400
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 1728863, below queue.retention_days (6.01) + queue.dead_letter_retention_days (14), in seconds 1728864: a message could come back after its key was forgotten, and its effect would be repeated. Raise retention_seconds, or lower one of the two.
run "reject_retention_below_both_queues" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    retention_seconds = 1728863
    queue             = { dead_letter_retention_days = 14, retention_days = 6.01 }
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 2000000, not above effect.timeout_seconds (2000000): the key could be forgotten while its effect still runs. Raise retention_seconds, or lower effect.timeout_seconds.
run "reject_retention_of_the_effects_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect            = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 2000000 }
    retention_seconds = 2000000
  }

  expect_failures = [var.retention_seconds]
}

# retention_seconds is 1555200, not above effect.timeout_seconds (1555200): the key could be forgotten while its effect still runs. Raise retention_seconds, or lower effect.timeout_seconds.
run "reject_default_retention_of_the_effects_time" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    effect            = { function = { arn = "arn:aws:lambda:eu-central-1:111122223333:function:charge" }, timeout_seconds = 1555200 }
    retention_seconds = null
  }

  expect_failures = [var.retention_seconds]
}

# --- The guard.

# guard is "lambda", but must be function or direct.
run "reject_unknown_guard" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard = "lambda"
  }

  expect_failures = [var.guard]
}

# namespace is "", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_of_nothing" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = ""
  }

  expect_failures = [var.namespace]
}

# namespace is " ", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_blank_namespace" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = " "
  }

  expect_failures = [var.namespace]
}

# namespace is "it's", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_a_quote" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "it's"
  }

  expect_failures = [var.namespace]
}

# namespace is "\"a\"", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_double_quotes" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "\"a\""
  }

  expect_failures = [var.namespace]
}

# namespace is "a\\b", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_a_backslash" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "a\\b"
  }

  expect_failures = [var.namespace]
}

# namespace is "{a", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_an_opening_brace" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "{a"
  }

  expect_failures = [var.namespace]
}

# namespace is "a}", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_a_closing_brace" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "a}"
  }

  expect_failures = [var.namespace]
}

# namespace is "für", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_with_an_umlaut" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "für"
  }

  expect_failures = [var.namespace]
}

# namespace is "a\nb", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_of_two_lines" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "a\nb"
  }

  expect_failures = [var.namespace]
}

# namespace is "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn", but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces.
run "reject_namespace_of_1025_characters" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    namespace = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"
  }

  expect_failures = [var.namespace]
}

# guard_function.memory_mb is 127, but must be a whole number from 128 to 10240.
run "reject_guard_with_too_little_memory" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { memory_mb = 127 }
  }

  expect_failures = [var.guard_function]
}

# guard_function.memory_mb is 10241, but must be a whole number from 128 to 10240.
run "reject_guard_with_too_much_memory" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { memory_mb = 10241 }
  }

  expect_failures = [var.guard_function]
}

# guard_function.memory_mb is 512.5, but must be a whole number from 128 to 10240.
run "reject_guard_with_half_a_megabyte" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { memory_mb = 512.5 }
  }

  expect_failures = [var.guard_function]
}

# guard_function.timeout_seconds is 9, but must be a whole number from 10 to 55: a call to AWS may take 7 seconds, and the state machine gives the guard up after 60.
run "reject_guard_of_9_seconds" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { timeout_seconds = 9 }
  }

  expect_failures = [var.guard_function]
}

# guard_function.timeout_seconds is 56, but must be a whole number from 10 to 55: a call to AWS may take 7 seconds, and the state machine gives the guard up after 60.
run "reject_guard_of_56_seconds" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { timeout_seconds = 56 }
  }

  expect_failures = [var.guard_function]
}

# guard_function.timeout_seconds is 10.5, but must be a whole number from 10 to 55: a call to AWS may take 7 seconds, and the state machine gives the guard up after 60.
run "reject_guard_of_half_a_second_more" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    guard_function = { timeout_seconds = 10.5 }
  }

  expect_failures = [var.guard_function]
}

# --- The event, the starter, the queue and the alarms.

# event has a blank path (fingerprint null, id " "): a blank is no JMESPath. Leave it out for the default.
run "reject_blank_path_of_a_key" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    event = { id = " " }
  }

  expect_failures = [var.event]
}

# event has a blank path (fingerprint "", id null): a blank is no JMESPath. Leave it out for the default.
run "reject_blank_path_of_a_fingerprint" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    event = { fingerprint = "" }
  }

  expect_failures = [var.event]
}

# function.environment has STATE_MACHINE_ARN, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_the_state_machine" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    function = { environment = { STATE_MACHINE_ARN = "mine" } }
  }

  expect_failures = [var.function]
}

# function.environment has IDEMPOTENCY_TABLE, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_the_idempotency_table" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    function = { environment = { IDEMPOTENCY_TABLE = "mine" } }
  }

  expect_failures = [var.function]
}

# function.environment has WORKFLOW_NAMESPACE, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_the_namespace" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    function = { environment = { WORKFLOW_NAMESPACE = "mine" } }
  }

  expect_failures = [var.function]
}

# function.environment has WORKFLOW_RETENTION_SECONDS, set by this module or by Lambda itself: choose other names.
run "reject_environment_with_the_retention_of_claims" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    function = { environment = { WORKFLOW_RETENTION_SECONDS = "mine" } }
  }

  expect_failures = [var.function]
}

# queue.max_receive_count (8) x the larger of queue.visibility_timeout_seconds (43200) and queue.backoff_max_seconds (null) must be below queue.retention_days (4, in seconds 345600): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the larger of the two, or raise queue.retention_days.
run "reject_receives_of_a_workflow_beyond_the_retention" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    queue = { max_receive_count = 8, visibility_timeout_seconds = 43200 }
  }

  expect_failures = [var.queue]
}

# alarms.executions_failed is -1, but must be a whole number, 0 or more.
run "reject_executions_failed_below_0" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    alarms = { executions_failed = -1 }
  }

  expect_failures = [var.alarms]
}

# alarms.executions_failed is 0.5, but must be a whole number, 0 or more.
run "reject_half_an_execution_failed" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    alarms = { executions_failed = 0.5 }
  }

  expect_failures = [var.alarms]
}

# alarms.executions_throttled is -1, but must be a whole number, 0 or more.
run "reject_executions_throttled_below_0" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    alarms = { executions_throttled = -1 }
  }

  expect_failures = [var.alarms]
}

# alarms.executions_throttled is 0.5, but must be a whole number, 0 or more.
run "reject_half_an_execution_throttled" {
  command = plan

  module {
    source = "./modules/workflow"
  }

  variables {
    alarms = { executions_throttled = 0.5 }
  }

  expect_failures = [var.alarms]
}
