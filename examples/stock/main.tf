# An order is taken by code of its own, src/stock.py: a row for each of its lines, its quantities off the stock, and a
# notification, all of it once or, where something is out of stock, nothing of it.
module "stock" {
  source = "../.."

  name                = "stock"
  business_table_name = "stock_order_lines"

  deletion_protection = var.deletion_protection

  business_table = {
    hash_key       = "order_id"
    range_key      = "line"
    range_key_type = "N"
  }

  function = {
    environment     = var.function_environment
    handler         = "stock.handler"
    package         = coalesce(var.package, "${path.module}/stock.zip")
    table_arns      = [aws_dynamodb_table.stock.arn]
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

# What is free of each article.
resource "aws_dynamodb_table" "stock" {
  # checkov:skip=CKV_AWS_119:An example: DynamoDB's own key encrypts it.

  billing_mode                = "PAY_PER_REQUEST"
  deletion_protection_enabled = var.deletion_protection
  hash_key                    = "sku"
  name                        = "stock"

  attribute {
    name = "sku"
    type = "S"
  }

  point_in_time_recovery {
    enabled = true
  }
}
