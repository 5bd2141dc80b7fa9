output "bus_name" {
  description = "Name of the event bus that the scans are put on."
  value       = aws_cloudwatch_event_bus.parcels.name
}

output "parcels" {
  description = "All outputs of the consumer: queue_url, topic_arn, ledger_table_name and so on."
  value       = module.parcels
}
