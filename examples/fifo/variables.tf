variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the tables; false to try the example and destroy it again."
  type        = bool
}

variable "function_environment" {
  default     = {}
  description = "Further environment variables of the function."
  type        = map(string)
}

variable "function_timeout_seconds" {
  default     = 30
  description = "Seconds that one call of the function may take, 10 to 900."
  type        = number
}

variable "visibility_timeout_seconds" {
  default     = null
  description = "Seconds until a message in work is given out again, at least function_timeout_seconds; null means six times that."
  type        = number
}
