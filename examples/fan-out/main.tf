# A sale becomes a row, and word of it goes to the topic.
module "sales" {
  source = "../.."

  name                = "sales"
  business_table_name = "sale_records"

  deletion_protection = var.deletion_protection

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

# Another team's consumer writes an invoice for each sale that it hears of. The topic may say a thing twice: the second
# time is a duplicate by the sale's own id, which is in the message.
module "invoices" {
  source = "../.."

  name                = "invoices"
  business_table_name = "invoice_records"

  deletion_protection = var.deletion_protection

  event = {
    item = "{id: id, amount: total}"
  }

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    producers                  = [{ service = "sns.amazonaws.com", source_arn = module.sales.topic_arn }]
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

# Raw: the message is the queue's message, without SNS's envelope around it. A third consumer is a third subscription.
resource "aws_sns_topic_subscription" "invoices" {
  endpoint             = module.invoices.queue_arn
  protocol             = "sqs"
  raw_message_delivery = true
  topic_arn            = module.sales.topic_arn
}
