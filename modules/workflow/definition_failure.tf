# How an execution fails: what becomes of its claim, and of its message.
locals {
  # Why an execution fails: [reason, detail, what is done first].
  failures = {
    "Claim kept"           = ["claim-kept", "An earlier execution may have run the effect: release the key, or drop this message.", "Dead letter"]
    "Conflict"             = ["id-reused", "The key is claimed for other content.", "Dead letter"]
    "Guard failed"         = ["guard-failed", local.detail, "Release"]
    "Not applied"          = ["not-applied", local.detail, "Release"]
    "Outcome not recorded" = ["outcome-not-recorded", local.detail, "Dead letter"]
    "Outcome unknown"      = ["outcome-unknown", local.detail, "Park"]
  }

  failure_states = merge({ for name, failure in local.failures : name => {
    Type          = "Pass"
    QueryLanguage = "JSONata"
    Output        = { reason = failure[0], detail = failure[1] }
    Next          = failure[2]
    } }, {
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
  })
}
