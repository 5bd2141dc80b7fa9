output "accounts" {
  description = "All outputs of the consumer: queue_url, topic_arn, ledger_table_name and so on."
  value       = module.accounts
}

output "subscriber_queue_url" {
  description = "URL of the FIFO queue that gets the notifications."
  value       = aws_sqs_queue.subscriber.url
}
