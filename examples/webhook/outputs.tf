output "token_secret_arn" {
  description = "ARN of the secret that holds the token."
  value       = aws_secretsmanager_secret.token.arn
}

output "webhook" {
  description = "All outputs of the operation: queue_url, dead_letter_queue_url, ledger_table_name and so on."
  value       = module.webhook
}
