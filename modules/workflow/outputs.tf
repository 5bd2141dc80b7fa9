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

output "failure_rule_name" {
  description = "Name of EventBridge's rule for executions that end without a dead letter of their own."
  value       = aws_cloudwatch_event_rule.failure.name
}

output "function_arn" {
  description = "ARN of the starter's function, without a version."
  value       = module.starter.function_arn
}

output "function_name" {
  description = "Name of the starter's function."
  value       = module.starter.function_name
}

output "guard_function_arn" {
  description = "ARN of the guard's function, without a version; null with the direct guard."
  value       = one(module.guard[*].function_arn)
}

output "guard_function_name" {
  description = "Name of the guard's function; null with the direct guard."
  value       = one(module.guard[*].function_name)
}

output "idempotency_table_arn" {
  description = "ARN of the idempotency table."
  value       = aws_dynamodb_table.idempotency.arn
}

output "idempotency_table_name" {
  description = "Name of the idempotency table."
  value       = aws_dynamodb_table.idempotency.name
}

output "log_group_name" {
  description = "Name of the starter's log group."
  value       = module.starter.log_group_name
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
  description = "ARN of the starter's role."
  value       = module.starter.role_arn
}

output "role_name" {
  description = "Name of the starter's role."
  value       = module.starter.role_name
}

output "state_machine_arn" {
  description = "ARN of the state machine."
  value       = aws_sfn_state_machine.workflow.arn
}

output "state_machine_name" {
  description = "Name of the state machine."
  value       = aws_sfn_state_machine.workflow.name
}

output "workflow_log_group_name" {
  description = "Name of the state machine's log group."
  value       = aws_cloudwatch_log_group.workflow.name
}

output "workflow_role_arn" {
  description = "ARN of the state machine's role."
  value       = aws_iam_role.workflow.arn
}

output "workflow_role_name" {
  description = "Name of the state machine's role."
  value       = aws_iam_role.workflow.name
}
