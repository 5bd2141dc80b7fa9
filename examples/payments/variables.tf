variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the ledger; false to try the example and destroy it again."
  type        = bool
}

variable "effect_timeout_seconds" {
  default     = 10
  description = "Seconds that one charge may take, 1 or more; the provider's answer is waited for a little less."
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

variable "package" {
  default     = null
  description = "Path of the zip that holds src; null means payments.zip in this folder, as the README builds it."
  type        = string
}

variable "provider_url" {
  description = "Where the payment provider is, such as https://payments.example.com: it takes POST /charges, and GET /charges/<key> tells what became of one."
  type        = string
}

variable "settle_seconds" {
  default     = null
  description = "Seconds after a claim's end in which the provider may still charge; only reconcile waits for it. Null means effect_timeout_seconds + 120."
  type        = number
}

variable "uncertain" {
  default     = "provider_key"
  description = "What is done where nobody knows whether an order was charged: park, provider_key or reconcile."
  type        = string
}

variable "visibility_timeout_seconds" {
  default     = null
  description = "Seconds until a message in work is given out again, at least function_timeout_seconds; null means six times that."
  type        = number
}
