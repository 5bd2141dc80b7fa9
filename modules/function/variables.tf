variable "batch_size" {
  description = "Messages in one call of the function, 1 to 10000. A larger batch costs fewer calls for each message."
  nullable    = false
  type        = number
}

variable "business_table_arn" {
  description = "ARN of the business table: the function may put rows into it, with code of your own update, delete and check them too."
  nullable    = false
  type        = string
}

variable "dead_letter_queue_arn" {
  description = "ARN of the dead-letter queue: the function may send to it."
  nullable    = false
  type        = string
}

variable "environment" {
  description = "Environment variables of the function, at most 4 KB in all."
  nullable    = false
  type        = map(string)
}

variable "function" {
  description = "The function: package is the path of its zip and handler names the function in it (null = those that come with the module), table_arns are further tables that code of your own writes to, the rest as in the root module's variable of this name."
  nullable    = false

  type = object({
    architecture            = string
    batching_window_seconds = number
    enabled                 = bool
    handler                 = string
    layers                  = list(string)
    maximum_concurrency     = number
    memory_mb               = number
    package                 = string
    permissions_boundary    = string
    policy_documents        = list(string)
    reserved_concurrency    = number
    runtime                 = string
    snap_start              = bool
    table_arns              = list(string)
    timeout_seconds         = number
    vpc                     = object({ security_group_ids = list(string), subnet_ids = list(string) })
  })
}

variable "kms_key_arn" {
  default     = null
  description = "ARN of the KMS key that the queues, tables and topic use; the function may use it, and its environment and log group are encrypted with it. Null = no key of your own."
  type        = string
}

variable "ledger_table_arn" {
  description = "ARN of the ledger table: the function may put, read and mark rows in it."
  nullable    = false
  type        = string
}

variable "log_retention_days" {
  description = "Days that the function's log is kept, one of CloudWatch's values; 0 keeps it for ever."
  nullable    = false
  type        = number
}

variable "name" {
  description = "Name of the function and of its role, at most 64 characters. Another name makes another function."
  nullable    = false
  type        = string
}

variable "queue_arn" {
  description = "ARN of the queue that the function reads, and whose messages it hides until they are to be tried again."
  nullable    = false
  type        = string
}

variable "tags" {
  default     = {}
  description = "Tags of the function, its role, log group and event source mapping."
  nullable    = false
  type        = map(string)
}

variable "topic_arns" {
  description = "The topic that the function may publish to, as a list of none or one: its length is known while the ARN is not."
  nullable    = false
  type        = list(string)
}
