output "alarm_names" {
  description = "Names of the CloudWatch alarms, the composite one included, sorted."
  value       = module.alarms.alarm_names
}

output "dashboard_name" {
  description = "Name of the CloudWatch dashboard; null without one."
  value       = module.alarms.dashboard_name
}

output "dead_letter_queue_arn" {
  description = "ARN of the dead-letter queue."
  value       = module.queue.dead_letter_queue_arn
}

output "dead_letter_queue_url" {
  description = "URL of the dead-letter queue."
  value       = module.queue.dead_letter_queue_url
}

output "function_arn" {
  description = "ARN of the function, without a version."
  value       = module.function.function_arn
}

output "function_name" {
  description = "Name of the function."
  value       = module.function.function_name
}

output "ledger_table_arn" {
  description = "ARN of the ledger table."
  value       = module.tables.ledger_table_arn
}

output "ledger_table_name" {
  description = "Name of the ledger table."
  value       = module.tables.ledger_table_name
}

output "log_group_name" {
  description = "Name of the function's log group."
  value       = module.function.log_group_name
}

output "queue_arn" {
  description = "ARN of the intake queue. It waits for the queue's policy, so that a producer wired to it may send at once."
  value       = module.queue.queue_arn
}

output "queue_url" {
  description = "URL of the intake queue. It waits for the queue's policy, as queue_arn does."
  value       = module.queue.queue_url
}

output "role_arn" {
  description = "ARN of the function's role."
  value       = module.function.role_arn
}

output "role_name" {
  description = "Name of the function's role."
  value       = module.function.role_name
}
