# The two guards: the same row, the same answer.
locals {
  guard_failed = [for error in local.any_error : { ErrorEquals = [error], Next = "Guard failed" }]

  guard_states = {
    function = {
      Guard = {
        Type          = "Task"
        QueryLanguage = "JSONata"
        Resource      = "arn:${data.aws_partition.current.partition}:states:::lambda:invoke"
        Arguments = {
          FunctionName = one(module.guard[*].function_arn)
          Payload = {
            fingerprint      = "{% ${local.given}.fingerprint %}"
            key              = local.key.pk
            messageId        = "{% ${local.given}.messageId %}"
            namespace        = local.key.sk
            owner            = local.owner
            retentionSeconds = local.retention_seconds
            returnResult     = true
          }
        }
        Output         = "{% $states.result.Payload %}"
        TimeoutSeconds = 60
        # The same owner may ask again: a guard that died after its write loses nothing.
        Retry = [local.call_retry]
        Catch = local.guard_failed
        Next  = "Claimed?"
      }
    }

    direct = {
      Guard = {
        Type          = "Task"
        QueryLanguage = "JSONata"
        Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:updateItem"
        Arguments = merge(local.row, {
          ConditionExpression      = "attribute_not_exists(pk) OR #status = :released OR (#owner = :owner AND #status = :in_progress AND attribute_not_exists(parkedAt))"
          UpdateExpression         = "SET #status = :in_progress, #owner = :owner, claimedAt = :now, expiresAt = :expires, messageId = :message_id, fingerprint = :fingerprint REMOVE completedAt, #detail, parkedAt, #reason, releasedAt, #result"
          ExpressionAttributeNames = { "#detail" = "detail", "#owner" = "owner", "#reason" = "reason", "#result" = "result", "#status" = "status" }
          ExpressionAttributeValues = {
            ":expires"     = local.expires_at
            ":fingerprint" = { S = "{% ${local.given}.fingerprint %}" }
            ":in_progress" = { S = "IN_PROGRESS" }
            ":message_id"  = { S = "{% ${local.given}.messageId %}" }
            ":now"         = local.now_ms
            ":owner"       = { S = local.owner }
            ":released"    = { S = "RELEASED" }
          }
        })
        Output         = { proceed = true, reason = "claimed", idempotencyKey = local.key }
        TimeoutSeconds = 60
        Retry          = local.write_retry
        Catch          = concat([{ ErrorEquals = [local.refused], Next = "Look up claim" }], local.guard_failed)
        Next           = "Effect"
      }

      # What refused the write is not told with the error.
      "Look up claim" = {
        Type          = "Task"
        QueryLanguage = "JSONata"
        Resource      = "arn:${data.aws_partition.current.partition}:states:::dynamodb:getItem"
        Arguments     = merge(local.row, { ConsistentRead = true })
        Output = "{% (${join("; ", [
          "$item := $states.result.Item",
          "$status := $item.status.S",
          "$reason := $not($exists($item)) or $status = 'RELEASED' ? 'gone' : $exists($item.fingerprint) and $item.fingerprint.S != ${local.given}.fingerprint ? 'conflict' : $exists($item.parkedAt) ? 'parked' : 'duplicate'",
          "$merge([{'proceed': false, 'reason': $reason, 'status': $status, 'idempotencyKey': {'pk': ${local.given}.key, 'sk': '${var.namespace}'}}, $exists($item.result.S) ? {'result': $parse($item.result.S)} : {}])",
        ])}) %}"
        TimeoutSeconds = 60
        Retry          = [local.call_retry]
        Catch          = local.guard_failed
        Next           = "Claimed?"
      }
    }
  }
}
