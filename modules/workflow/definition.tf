# The state machine. Its states speak JSONata; the top level stays JSONPath, so that a fragment may speak either.
#
#   Guard ─▶ Claimed? ─▶ Effect ─▶ Complete
#                │          ├─ Not applied ─────▶ Release ─┐
#                │          └─ Outcome unknown ─▶ Park ────┤
#                ├─ Conflict, Claim kept ──────────────────┴▶ Dead letter ─▶ Failed
#                └─ Skipped
#
# Guard failed leads to Release, and Outcome not recorded (of Complete) to Dead letter.
#
# lambda/src/idempotent_consumer/workflow/claim.py writes the same row, and says what stands in it.
locals {
  given = "$states.context.Execution.Input"
  owner = "{% $states.context.Execution.Id %}"

  now_ms     = { N = "{% $string($millis()) %}" }
  expires_at = { N = "{% $string($floor($millis() / 1000) + ${local.retention_seconds}) %}" }

  key = { pk = "{% ${local.given}.key %}", sk = var.namespace }

  row = {
    Key       = { pk = { S = local.key.pk }, sk = { S = local.key.sk } }
    TableName = aws_dynamodb_table.idempotency.name
  }

  # What tells of an execution in its row. The effect has begun: the row may have been released meanwhile, or have
  # expired under a long fragment. What is known of the effect is recorded all the same, unless another has the key.
  record = {
    condition = "attribute_not_exists(pk) OR #owner = :owner"
    sets      = "#owner = :owner, messageId = :message_id, fingerprint = :fingerprint, expiresAt = :expires"
    values = {
      ":expires"     = local.expires_at
      ":fingerprint" = { S = "{% ${local.given}.fingerprint %}" }
      ":message_id"  = { S = "{% ${local.given}.messageId %}" }
      ":now"         = local.now_ms
      ":owner"       = { S = local.owner }
    }
  }

  # A letter comes back by way of a replay. What it asks for must not end as skipped unless it is done.
  is_letter = "$exists(${local.given}.attributes.dead_letter_key)"

  # What a dead letter tells of an error: printable, since SQS refuses a message for other characters.
  error  = "($exists($states.input.Error) ? $states.input.Error : 'unknown') & ': ' & ($exists($states.input.Cause) ? $string($states.input.Cause) : '')"
  detail = "{% $substring($replace(${local.error}, /[^\\x20-\\x7e]/, '?'), 0, 1000) %}"

  # Half an hour on average.
  call_retry = {
    BackoffRate     = 2
    ErrorEquals     = ["States.ALL"]
    IntervalSeconds = 1
    JitterStrategy  = "FULL"
    MaxAttempts     = 20
    MaxDelaySeconds = 300
  }
  # The last does not stand for the first.
  any_error = ["States.DataLimitExceeded", "States.ALL"]
  # Some four hours: what is known of an effect, or its message, is not given up before.
  lasting_retry = merge(local.call_retry, { MaxAttempts = 100 })
  refused       = "DynamoDB.ConditionalCheckFailedException"
  # A refused write stays refused.
  write_retry  = [{ ErrorEquals = [local.refused], MaxAttempts = 0 }, local.call_retry]
  record_retry = [{ ErrorEquals = [local.refused], MaxAttempts = 0 }, local.lasting_retry]

  definition = jsonencode({
    Comment = "Runs the effect of a message at most once under its key."
    StartAt = "Guard"
    States = merge(local.guard_states[var.guard], local.success_states, local.failure_states, {
      "Claimed?" = {
        Type          = "Choice"
        QueryLanguage = "JSONata"
        Choices = [
          { Condition = "{% $states.input.proceed %}", Next = "Effect" },
          { Condition = "{% $states.input.reason = 'gone' %}", Next = "Guard" },
          { Condition = "{% $states.input.reason = 'conflict' %}", Next = "Conflict" },
          { Condition = "{% ${local.is_letter} and $not($states.input.status = 'COMPLETED') %}", Next = "Claim kept" },
        ]
        Default = "Skipped"
      }
      Effect = local.effect_states[var.effect.function == null ? "fragment" : "function"]
    })
  })
}
