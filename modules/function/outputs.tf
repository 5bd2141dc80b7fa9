output "function_arn" {
  description = "ARN of the function, without a version."
  value       = aws_lambda_function.worker.arn
}

output "function_name" {
  description = "Name of the function."
  value       = aws_lambda_function.worker.function_name
}

output "log_group_name" {
  description = "Name of the function's log group."
  value       = aws_cloudwatch_log_group.worker.name
}

output "role_arn" {
  description = "ARN of the function's role."
  value       = aws_iam_role.worker.arn
}

output "role_name" {
  description = "Name of the function's role."
  value       = aws_iam_role.worker.name
}
