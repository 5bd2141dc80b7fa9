output "function_name" {
  description = "Name of the reconciler's function."
  value       = aws_lambda_function.reconciler.function_name
}
