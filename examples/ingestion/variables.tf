variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the tables; false to try the example and destroy it again."
  type        = bool
}

variable "document_source" {
  default     = "s3"
  description = "Where documents come from: s3, a bucket of the example's own whose objects they are, or sqs, messages such as {\"id\": \"d-1\", \"text\": \"…\"}."
  type        = string

  validation {
    condition     = contains(["s3", "sqs"], var.document_source)
    error_message = "document_source is ${jsonencode(var.document_source)}, but must be s3 or sqs."
  }
}

variable "function_environment" {
  default     = {}
  description = "Further environment variables of the starter and the guard."
  type        = map(string)
}

variable "function_timeout_seconds" {
  default     = 30
  description = "Seconds that one call of the starter may take, 10 to 900."
  type        = number
}

variable "guard" {
  default     = "function"
  description = "Who claims a document: function, or direct, which is Step Functions itself."
  type        = string
}

variable "package" {
  default     = null
  description = "Path of the zip that holds src; null means ingestion.zip in this folder, as the README makes it."
  type        = string
}

variable "visibility_timeout_seconds" {
  default     = null
  description = "Seconds until a message in work is given out again, at least function_timeout_seconds; null means six times that."
  type        = number
}
