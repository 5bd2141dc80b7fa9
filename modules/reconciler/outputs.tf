output "function_name" {
  description = "Name of the reconciler's function."
  value       = module.function.function_name
}
