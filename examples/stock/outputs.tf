output "stock" {
  description = "All outputs of the consumer: queue_url, topic_arn, ledger_table_name and so on."
  value       = module.stock
}

output "stock_table_name" {
  description = "Name of the table that says what is free of each article."
  value       = aws_dynamodb_table.stock.name
}
