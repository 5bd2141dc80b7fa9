# The effect, and what follows from how it ended.
locals {
  fragment = try(jsondecode(var.effect.fragment), null)

  # What says for certain that a function has not begun. Of a fragment only its author can tell.
  # https://docs.aws.amazon.com/lambda/latest/api/API_Invoke.html
  not_applied_errors = coalesce(var.effect.not_applied_errors, var.effect.function == null ? [] : [
    "Lambda.ResourceNotFoundException", "Lambda.TooManyRequestsException",
  ])

  effect_outcome = {
    Catch = concat(
      [for errors in [local.not_applied_errors] : { ErrorEquals = errors, Next = "Not applied" } if length(errors) > 0],
      # States.ALL does not stand for it.
      [for error in ["States.DataLimitExceeded", "States.ALL"] : { ErrorEquals = [error], Next = "Outcome unknown" }],
    )
    Next = "Complete"
  }

  effect_states = {
    function = merge(local.effect_outcome, {
      Type           = "Task"
      QueryLanguage  = "JSONata"
      Resource       = "arn:${data.aws_partition.current.partition}:states:::lambda:invoke"
      Arguments      = { FunctionName = try(var.effect.function.arn, null), Payload = "{% ${local.given} %}" }
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

  completed = "( $text := $string($states.input); $length($text) <= 100000 ? {'S': $text} : {'NULL': true} )"

  # Why an execution fails: [reason, detail, what is done first].
  failures = {
    "Claim kept"           = ["claim-kept", "An earlier execution may have run the effect: release the key, or drop this message.", "Dead letter"]
    "Conflict"             = ["id-reused", "The key is claimed for other content.", "Dead letter"]
    "Guard failed"         = ["guard-failed", local.detail, "Release"]
    "Not applied"          = ["not-applied", local.detail, "Release"]
    "Outcome not recorded" = ["outcome-not-recorded", local.detail, "Dead letter"]
    "Outcome unknown"      = ["outcome-unknown", local.detail, "Park"]
  }

  failure_states = { for name, failure in local.failures : name => {
    Type          = "Pass"
    QueryLanguage = "JSONata"
    Output        = { reason = failure[0], detail = failure[1] }
    Next          = failure[2]
  } }

  outcome_states = {
    Complete = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
      Arguments = merge(local.row, {
        ConditionExpression      = "#owner = :owner AND #status IN (:in_progress, :completed)"
        UpdateExpression         = "SET #status = :completed, completedAt = :now, expiresAt = :expires, #result = :result"
        ExpressionAttributeNames = { "#owner" = "owner", "#result" = "result", "#status" = "status" }
        ExpressionAttributeValues = {
          ":completed"   = { S = "COMPLETED" }
          ":expires"     = local.expires_at
          ":in_progress" = { S = "IN_PROGRESS" }
          ":now"         = local.now_ms
          ":owner"       = { S = local.owner }
          ":result"      = "{% ${local.completed} %}"
        }
      })
      Output         = "{% $merge([{'status': 'completed', 'idempotencyKey': {'pk': ${local.given}.key, 'sk': '${var.namespace}'}}, $length($string($states.input)) <= 100000 ? {'result': $states.input} : {}]) %}"
      TimeoutSeconds = 60
      Retry          = local.write_retry
      Catch          = [{ ErrorEquals = ["States.ALL"], Next = "Outcome not recorded" }]
      End            = true
    }

    Skipped = {
      Type          = "Pass"
      QueryLanguage = "JSONata"
      Output        = "{% $merge([{'status': 'skipped', 'reason': $states.input.reason, 'idempotencyKey': $states.input.idempotencyKey}, ${var.return_results} and $exists($states.input.result) ? {'result': $states.input.result} : {}]) %}"
      End           = true
    }

    Release = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
      Arguments = merge(local.row, {
        ConditionExpression      = "#owner = :owner AND #status IN (:in_progress, :released) AND attribute_not_exists(parkedAt)"
        UpdateExpression         = "SET #status = :released, releasedAt = :now, #reason = :reason, #detail = :detail"
        ExpressionAttributeNames = { "#detail" = "detail", "#owner" = "owner", "#reason" = "reason", "#status" = "status" }
        ExpressionAttributeValues = {
          ":detail"      = { S = "{% $states.input.detail %}" }
          ":in_progress" = { S = "IN_PROGRESS" }
          ":now"         = local.now_ms
          ":owner"       = { S = local.owner }
          ":reason"      = { S = "{% $states.input.reason %}" }
          ":released"    = { S = "RELEASED" }
        }
      })
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = local.write_retry
      Catch          = [{ ErrorEquals = ["States.ALL"], Next = "Dead letter", Output = "{% $states.input %}" }]
      Next           = "Dead letter"
    }

    Park = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
      Arguments = merge(local.row, {
        ConditionExpression      = "#owner = :owner AND #status = :in_progress"
        UpdateExpression         = "SET parkedAt = :now, expiresAt = :expires, #reason = :reason, #detail = :detail"
        ExpressionAttributeNames = { "#detail" = "detail", "#owner" = "owner", "#reason" = "reason", "#status" = "status" }
        ExpressionAttributeValues = {
          ":detail"      = { S = "{% $states.input.detail %}" }
          ":expires"     = local.expires_at
          ":in_progress" = { S = "IN_PROGRESS" }
          ":now"         = local.now_ms
          ":owner"       = { S = local.owner }
          ":reason"      = { S = "{% $states.input.reason %}" }
        }
      })
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = local.write_retry
      Catch          = [{ ErrorEquals = ["States.ALL"], Next = "Dead letter", Output = "{% $states.input %}" }]
      Next           = "Dead letter"
    }

    # Ten attributes are SQS's limit. The key comes first: of a message that is known by its id only, it alone tells which it was.
    "Dead letter" = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::sqs:sendMessage"
      Arguments = {
        MessageBody = "{% ${local.given}.body %}"
        QueueUrl    = module.queue.dead_letter_queue_url
        MessageAttributes = "{% (${join("; ", [
          "$text := function($value) { {'DataType': 'String', 'StringValue': $value} }",
          "$producers := $spread($sift(${local.given}.attributes, function($value, $name) { $not($name in ['dead_letter_key', 'dead_letter_reason', 'dead_letter_execution', 'dead_letter_detail']) }))",
          "$all := $append($append([{'dead_letter_key': $text(${local.given}.key)}], $producers[[0..8]]), [{'dead_letter_reason': $text($states.input.reason)}, {'dead_letter_execution': $text($states.context.Execution.Id)}, {'dead_letter_detail': $text($states.input.detail)}])",
          "$merge($all[[0..9]])",
        ])}) %}"
      }
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = [local.call_retry]
      Next           = "Failed"
    }

    Failed = {
      Type          = "Fail"
      QueryLanguage = "JSONata"
      Error         = "{% 'IdempotentConsumer.' & $states.input.reason %}"
      Cause         = "{% $states.input.detail %}"
    }
  }
}
