# Orders come in as JSON with an id; each becomes one row and one notification.
module "orders" {
  source = "../.."

  name                = "orders"
  business_table_name = "order_records"
  ttl_window_days     = 30
  batch_size          = 10

  deletion_protection = var.deletion_protection

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}
