output "business_table_arn" {
  description = "ARN of the business table, created or existing; null without one."
  value       = one(concat(aws_dynamodb_table.business[*].arn, data.aws_dynamodb_table.business[*].arn))
}

output "business_table_name" {
  description = "Name of the business table, created or existing; null without one."
  value       = one(concat(aws_dynamodb_table.business[*].name, data.aws_dynamodb_table.business[*].name))
}

output "ledger_table_arn" {
  description = "ARN of the ledger table."
  value       = aws_dynamodb_table.ledger.arn
}

output "ledger_table_name" {
  description = "Name of the ledger table."
  value       = aws_dynamodb_table.ledger.name
}
