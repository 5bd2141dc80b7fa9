# modules/tables: the ledger, and a business table that is made or was there before.

mock_provider "aws" {
  source = "./tests/fixtures/mocks"

  mock_data "aws_dynamodb_table" {
    defaults = {
      arn       = "arn:aws:dynamodb:eu-central-1:111122223333:table/order_records"
      attribute = [{ name = "id", type = "S" }, { name = "line", type = "N" }]
      hash_key  = "id"
      range_key = "line"
    }
  }
}

variables {
  business_table      = { create = true, hash_key = "id", hash_key_type = "S", range_key = null, range_key_type = "S" }
  business_table_name = "order_records"
  ledger_table_name   = "orders-processed-events"
}

run "created_tables" {
  module {
    source = "./modules/tables"
  }

  assert {
    condition = (
      aws_dynamodb_table.ledger.name == "orders-processed-events" && aws_dynamodb_table.ledger.hash_key == "event_id" &&
      aws_dynamodb_table.ledger.range_key == null &&
      { for attribute in aws_dynamodb_table.ledger.attribute : attribute.name => attribute.type } == {
        created_at = "N", event_id = "S", pending_shard = "S"
      }
    )
    error_message = "the ledger's key is event_id, a string"
  }

  assert {
    condition = {
      for index in aws_dynamodb_table.ledger.global_secondary_index :
      index.name => "${index.hash_key}, ${index.range_key}, ${index.projection_type}"
    } == { pending = "pending_shard, created_at, KEYS_ONLY" }
    error_message = "pending rows are found by shard and age"
  }

  assert {
    condition     = aws_dynamodb_table.ledger.ttl[0].attribute_name == "ttl" && aws_dynamodb_table.ledger.ttl[0].enabled
    error_message = "the ledger's rows expire by the attribute ttl"
  }

  assert {
    condition = alltrue([
      for table in [aws_dynamodb_table.ledger, aws_dynamodb_table.business[0]] :
      table.billing_mode == "PAY_PER_REQUEST" && table.deletion_protection_enabled &&
      table.point_in_time_recovery[0].enabled && !table.server_side_encryption[0].enabled
    ])
    error_message = "both tables are protected, recoverable and paid by request"
  }

  assert {
    condition     = aws_dynamodb_table.business[0].name == "order_records" && aws_dynamodb_table.business[0].hash_key == "id"
    error_message = "business table"
  }

  assert {
    condition     = length(data.aws_dynamodb_table.business) == 0
    error_message = "no existing table is read"
  }
}

run "ledger_without_an_index" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    pending_index = false
  }

  # DynamoDB refuses an attribute that is no key of the table or of an index.
  assert {
    condition = (
      length(aws_dynamodb_table.ledger.global_secondary_index) == 0 &&
      one(aws_dynamodb_table.ledger.attribute).name == "event_id"
    )
    error_message = "neither the index nor its attributes"
  }
}

run "ledger_alone" {
  module {
    source = "./modules/tables"
  }

  variables {
    business_table      = null
    business_table_name = null
  }

  assert {
    condition     = length(aws_dynamodb_table.business) == 0 && length(data.aws_dynamodb_table.business) == 0
    error_message = "no business table is made or read"
  }

  assert {
    condition     = output.business_table_name == null && output.business_table_arn == null && output.ledger_table_name == "orders-processed-events"
    error_message = "outputs"
  }
}

run "created_table_with_two_keys_and_a_kms_key" {
  module {
    source = "./modules/tables"
  }

  variables {
    business_table      = { create = true, hash_key = "order", hash_key_type = "N", range_key = "line", range_key_type = "S" }
    deletion_protection = false
    kms_key_arn         = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  }

  assert {
    condition = (
      aws_dynamodb_table.business[0].hash_key == "order" && aws_dynamodb_table.business[0].range_key == "line" &&
      { for attribute in aws_dynamodb_table.business[0].attribute : attribute.name => attribute.type } == { line = "S", order = "N" }
    )
    error_message = "keys"
  }

  assert {
    condition = alltrue([
      for table in [aws_dynamodb_table.ledger, aws_dynamodb_table.business[0]] :
      !table.deletion_protection_enabled && table.server_side_encryption[0].enabled &&
      table.server_side_encryption[0].kms_key_arn == var.kms_key_arn
    ])
    error_message = "both tables use the key"
  }
}

run "existing_table_with_the_same_keys" {
  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = "line", range_key_type = "N" }
  }

  assert {
    condition     = length(aws_dynamodb_table.business) == 0 && data.aws_dynamodb_table.business[0].name == "order_records"
    error_message = "the existing table is read, none is made"
  }

  assert {
    condition     = output.business_table_name == "order_records" && output.business_table_arn == "arn:aws:dynamodb:eu-central-1:111122223333:table/order_records"
    error_message = "outputs"
  }
}

run "existing_table_without_a_range_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  override_data {
    target = data.aws_dynamodb_table.business
    values = { attribute = [{ name = "id", type = "S" }], hash_key = "id", range_key = "" }
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = null, range_key_type = "S" }
  }
}

run "reject_existing_table_with_another_hash_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "order_id", hash_key_type = "S", range_key = "line", range_key_type = "N" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}

run "reject_existing_table_with_another_type_of_hash_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "N", range_key = "line", range_key_type = "N" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}

run "reject_existing_table_with_a_range_key_that_is_not_given" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = null, range_key_type = "S" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}

run "reject_existing_table_with_another_range_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = "position", range_key_type = "N" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}

run "reject_existing_table_with_another_type_of_range_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = "line", range_key_type = "S" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}

run "reject_existing_table_without_the_range_key" {
  command = plan

  module {
    source = "./modules/tables"
  }

  override_data {
    target = data.aws_dynamodb_table.business
    values = { attribute = [{ name = "id", type = "S" }], hash_key = "id", range_key = "" }
  }

  variables {
    business_table = { create = false, hash_key = "id", hash_key_type = "S", range_key = "line", range_key_type = "N" }
  }

  expect_failures = [data.aws_dynamodb_table.business]
}
