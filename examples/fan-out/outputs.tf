output "invoices" {
  description = "All outputs of the consumer that hears of the sales."
  value       = module.invoices
}

output "sales" {
  description = "All outputs of the consumer that tells of them: queue_url, topic_arn, ledger_table_name and so on."
  value       = module.sales
}
