output "idempotency_table_name" { value = aws_dynamodb_table.idempotency.name }
output "dead_letter_queue_url" { value = module.queue.dead_letter_queue_url }
output "function_name" { value = module.starter.function_name }
output "guard_function_name" { value = one(module.guard[*].function_name) }
output "queue_url" { value = module.queue.queue_url }
output "state_machine_arn" { value = aws_sfn_state_machine.workflow.arn }
output "log_group_name" { value = module.starter.log_group_name }
