# The effect, and what is recorded of it.
locals {
  fragment = try(jsondecode(var.effect.fragment), null)

  # What says for certain that a function has not begun. What else says so, only its author can tell, or a fragment's.
  # https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
  not_applied_errors = distinct(concat(
    var.effect.function == null ? [] : ["Lambda.ResourceNotFoundException", "Lambda.TooManyRequestsException"],
    var.effect.not_applied_errors,
  ))

  effect_outcome = {
    Catch = concat(
      [for errors in [local.not_applied_errors] : { ErrorEquals = errors, Next = "Not applied" } if length(errors) > 0],
      [for error in local.any_error : { ErrorEquals = [error], Next = "Outcome unknown" }],
    )
    Next = "Complete"
  }

  effect_states = {
    function = merge(local.effect_outcome, {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::lambda:invoke"
      # A redrive of a stopped execution begins with this state, past the guard.
      Arguments = {
        FunctionName = "{% $states.context.Execution.RedriveCount > 0 ? $error('redriven in the effect') : '${try(var.effect.function.arn, "")}' %}"
        Payload      = "{% ${local.given} %}"
      }
      Output         = "{% $states.result.Payload %}"
      TimeoutSeconds = var.effect.timeout_seconds
      Retry          = [for errors in [local.not_applied_errors] : merge(local.call_retry, { ErrorEquals = errors, MaxAttempts = var.effect.max_attempts - 1 }) if length(errors) > 0]
    })

    # One branch: so one catcher holds for all of its states, and a Fail of its own says what the module shall do.
    fragment = merge(local.effect_outcome, {
      Type       = "Parallel"
      Branches   = [merge(try({ StartAt = local.fragment.StartAt }, {}), { States = local.fragment_states })]
      InputPath  = "$$.Execution.Input"
      OutputPath = "$[0]"
    })
  }

  # A branch has no query language of its own.
  fragment_states = { for name, state in try(local.fragment.States, {}) : name => merge(
    { for language in try([local.fragment.QueryLanguage], []) : "QueryLanguage" => language }, state
  ) }

  # In an object, since $string leaves a text as it is. Four bytes a character, and a state's payload is 262,144 bytes.
  result_text   = "$string({'r': $states.input})"
  is_recordable = "$length(${local.result_text}) <= 60000"
  recorded      = "(${local.is_recordable} ? {'S': $substring(${local.result_text}, 5, $length(${local.result_text}) - 6)} : {'NULL': true})"

  success_states = {
    Complete = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
      Arguments = merge(local.row, {
        ConditionExpression      = local.record.condition
        UpdateExpression         = "SET #status = :completed, completedAt = :now, #result = :result, ${local.record.sets} REMOVE #detail, #reason, releasedAt"
        ExpressionAttributeNames = { "#detail" = "detail", "#owner" = "owner", "#reason" = "reason", "#result" = "result", "#status" = "status" }
        ExpressionAttributeValues = merge(local.record.values, {
          ":completed" = { S = "COMPLETED" }
          ":result"    = "{% ${local.recorded} %}"
        })
      })
      Output         = "{% $merge([{'status': 'completed', 'idempotencyKey': {'pk': ${local.given}.key, 'sk': '${var.namespace}'}}, ${local.is_recordable} ? {'result': $states.input} : {}]) %}"
      TimeoutSeconds = 60
      Retry          = local.record_retry
      Catch          = [for error in local.any_error : { ErrorEquals = [error], Next = "Outcome not recorded" }]
      End            = true
    }

    Skipped = {
      Type          = "Pass"
      QueryLanguage = "JSONata"
      Output        = "{% $merge([{'status': 'skipped', 'reason': $states.input.reason, 'idempotencyKey': $states.input.idempotencyKey}, ${var.return_results} and $exists($states.input.result) ? {'result': $states.input.result} : {}]) %}"
      End           = true
    }
  }
}
