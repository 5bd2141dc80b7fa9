locals {
  shipped_handler = "idempotent_consumer.handler.handler"

  is_own_code = var.function.package != null || coalesce(var.function.handler, local.shipped_handler) != local.shipped_handler

  # AWS's action names, each with the call that needs it in docs/privileges.md. Batch calls have no action of their
  # own: PublishBatch is checked as sns:Publish, BatchExecuteStatement's UPDATE as dynamodb:PartiQLUpdate.
  rights = concat(
    [
      {
        sid       = "CommitToLedger"
        actions   = ["dynamodb:PutItem"]
        resources = [module.tables.ledger_table_arn]
      },
      # The shipped plan puts rows into the business table. A plan of the caller's own may do all that a transaction can,
      # but reads nothing.
      {
        sid       = "WriteRows"
        actions   = local.is_own_code ? ["dynamodb:ConditionCheckItem", "dynamodb:DeleteItem", "dynamodb:PutItem", "dynamodb:UpdateItem"] : ["dynamodb:PutItem"]
        resources = concat([module.tables.business_table_arn], local.is_own_code ? var.function.table_arns : [])
      },
      {
        sid       = "ReadAndMarkLedger"
        actions   = ["dynamodb:BatchGetItem", "dynamodb:PartiQLUpdate"]
        resources = [module.tables.ledger_table_arn]
      },
    ],
    [for arn in local.topic_arns : { sid = "Publish", actions = ["sns:Publish"], resources = [arn] }],
  )
}
