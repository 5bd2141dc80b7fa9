locals {
  # By the object alone: the table's name may be known only after apply.
  created_tables  = var.business_table == null ? 0 : var.business_table.create ? 1 : 0
  existing_tables = var.business_table == null ? 0 : var.business_table.create ? 0 : 1
}

# One row for each event that was ever committed. Without it, everything still in a queue is processed again.
resource "aws_dynamodb_table" "ledger" {
  # checkov:skip=CKV_AWS_119:Without kms_key_arn DynamoDB's own key encrypts it.

  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = "event_id"
  name                        = var.ledger_table_name
  tags                        = var.tags

  attribute {
    name = "event_id"
    type = "S"
  }

  dynamic "attribute" {
    for_each = var.pending_index ? { created_at = "N", pending_shard = "S" } : {}

    content {
      name = attribute.key
      type = attribute.value
    }
  }

  # Only rows that are not finished carry its key, so it is nearly empty. The rest of a row is read from the table: the index lags.
  dynamic "global_secondary_index" {
    for_each = var.pending_index ? ["pending"] : []

    content {
      hash_key        = "pending_shard"
      name            = global_secondary_index.value
      projection_type = "KEYS_ONLY"
      range_key       = "created_at"
    }
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }

  # The code writes this name too. It is no variable: DynamoDB cannot rename it in one step.
  ttl {
    attribute_name = "ttl"
    enabled        = true
  }
}

resource "aws_dynamodb_table" "business" {
  # checkov:skip=CKV_AWS_119:Without kms_key_arn DynamoDB's own key encrypts it.

  count = local.created_tables

  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = var.business_table.hash_key
  name                        = var.business_table_name
  range_key                   = var.business_table.range_key
  tags                        = var.tags

  attribute {
    name = var.business_table.hash_key
    type = var.business_table.hash_key_type
  }

  dynamic "attribute" {
    for_each = var.business_table.range_key[*]

    content {
      name = attribute.value
      type = var.business_table.range_key_type
    }
  }

  point_in_time_recovery {
    enabled = true
  }

  server_side_encryption {
    enabled     = var.kms_key_arn != null
    kms_key_arn = var.kms_key_arn
  }
}
