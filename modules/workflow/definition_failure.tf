# How an execution fails: what becomes of its claim, and of its message.
locals {
  # Why an execution fails: [reason, detail, what is done first].
  failures = {
    "Claim kept"           = ["claim-kept", "An earlier execution may have run the effect: release the key, or drop this message.", "Extend claim"]
    "Conflict"             = ["id-reused", "The key is claimed for other content.", "Dead letter"]
    "Guard failed"         = ["guard-failed", local.detail, "Release"]
    "Not applied"          = ["not-applied", local.detail, "Release"]
    "Outcome not recorded" = ["outcome-not-recorded", local.detail, "Dead letter"]
    "Outcome unknown"      = ["outcome-unknown", local.detail, "Park"]
  }

  # A state that nothing leads to is refused.
  failure_states = merge({ for name, failure in local.failures : name => {
    Type          = "Pass"
    QueryLanguage = "JSONata"
    Output        = { reason = failure[0], detail = failure[1] }
    Next          = failure[2]
    } if name != "Not applied" || length(local.not_applied_errors) > 0 }, {
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
        ConditionExpression      = local.record.condition
        UpdateExpression         = "SET #status = :in_progress, parkedAt = :now, #reason = :reason, #detail = :detail, ${local.record.sets} REMOVE releasedAt"
        ExpressionAttributeNames = { "#detail" = "detail", "#owner" = "owner", "#reason" = "reason", "#status" = "status" }
        ExpressionAttributeValues = merge(local.record.values, {
          ":detail"      = { S = "{% $states.input.detail %}" }
          ":in_progress" = { S = "IN_PROGRESS" }
          ":reason"      = { S = "{% $states.input.reason %}" }
        })
      })
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = local.record_retry
      Catch          = [{ ErrorEquals = ["States.ALL"], Next = "Dead letter", Output = "{% $states.input %}" }]
      Next           = "Dead letter"
    }

    # Whoever has it: a claim that nobody has decided on must not expire before this letter does.
    "Extend claim" = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
      Arguments = merge(local.row, {
        ConditionExpression       = "attribute_exists(pk)"
        UpdateExpression          = "SET expiresAt = :expires"
        ExpressionAttributeValues = { ":expires" = local.expires_at }
      })
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = local.write_retry
      Catch          = [{ ErrorEquals = ["States.ALL"], Next = "Dead letter", Output = "{% $states.input %}" }]
      Next           = "Dead letter"
    }

    # Ten attributes are SQS's limit, and four are ours. A producer's seven go into the body, in the form that failures.tf
    # sends.
    "Dead letter" = {
      Type          = "Task"
      QueryLanguage = "JSONata"
      Resource      = "arn:${data.aws_partition.current.partition}:states:::sqs:sendMessage"
      Arguments = {
        MessageBody       = "{% ${local.is_full} ? $string({'source': 'aws.states', 'detail': {'executionArn': $states.context.Execution.Id, 'stateMachineArn': $states.context.StateMachine.Id, 'status': 'FAILED', 'error': 'IdempotentConsumer.' & $states.input.reason, 'input': $string({'key': ${local.given}.key, 'body': ${local.given}.body, 'attributes': ${local.producers}})}}) : ${local.given}.body %}"
        MessageAttributes = "{% ${local.letter_attributes} %}"
        QueueUrl          = module.queue.dead_letter_queue_url
      }
      Output         = "{% $states.input %}"
      TimeoutSeconds = 60
      Retry          = [local.lasting_retry]
      Next           = "Failed"
    }

    # No text of the error's: it may quote a body, and goes to the log and to EventBridge. The letter has it.
    Failed = {
      Type          = "Fail"
      QueryLanguage = "JSONata"
      Error         = "{% 'IdempotentConsumer.' & $states.input.reason %}"
      Cause         = "The message is in the dead-letter queue, and dead_letter_detail says more."
    }
  })

  producers = "$sift(${local.given}.attributes, function($value, $name) { $not($name in ['dead_letter_key', 'dead_letter_reason', 'dead_letter_execution', 'dead_letter_detail']) })"

  is_full = "$count($keys(${local.producers})) > 6"

  # The key as SQS takes it: a business key is read from the body again.
  letter_key = "$replace(${local.given}.key, /[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]/, '?')"

  letter_attributes = "$merge([${local.is_full} ? {} : ${local.producers}, {${join(", ", [
    for name, value in {
      dead_letter_detail    = "$states.input.detail"
      dead_letter_execution = "$states.context.Execution.Id"
      dead_letter_key       = local.letter_key
      dead_letter_reason    = "$states.input.reason"
    } : "'${name}': {'DataType': 'String', 'StringValue': ${value}}"
  ])}}])"
}
