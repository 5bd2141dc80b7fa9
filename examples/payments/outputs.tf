output "payments" {
  description = "All outputs of the operation: queue_url, dead_letter_queue_url, ledger_table_name and so on."
  value       = module.payments
}
