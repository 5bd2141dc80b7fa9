# Each account's row is what its last event says, so the events of an account must be processed in their order: the
# account is their message group, and the queue, the topic and its subscriber are FIFO.
module "accounts" {
  source = "../.."

  name                = "accounts"
  business_table_name = "account_states"

  deletion_protection = var.deletion_protection

  business_table = {
    hash_key = "account"
  }

  # In their order, a later event may overwrite the row of an earlier one.
  event = {
    write_mode = "upsert"
  }

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    fifo                       = true
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}
