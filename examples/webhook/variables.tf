variable "allow_http" {
  default     = false
  description = "Whether receiver_url may begin with http://. For tests alone: the token can be read on the way."
  type        = bool
}

variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the ledger, and the secret is kept for 30 days; false to try the example and destroy it again."
  type        = bool
}

variable "effect_timeout_seconds" {
  default     = 10
  description = "Seconds that one call of the receiver may take, 1 or more."
  type        = number
}

variable "function_environment" {
  default     = {}
  description = "Further environment variables of the function."
  type        = map(string)
}

variable "function_timeout_seconds" {
  default     = 60
  description = "Seconds that one call of the function may take, up to 900: four times effect_timeout_seconds and 16 more, or longer."
  type        = number
}

variable "receiver_url" {
  description = "Where orders are announced, such as https://hooks.example.com/orders."
  type        = string
}

variable "visibility_timeout_seconds" {
  default     = null
  description = "Seconds until a message in work is given out again, at least function_timeout_seconds; null means six times that."
  type        = number
}
