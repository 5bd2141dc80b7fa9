variable "consumer_name" {
  description = "Name of the consumer, at most 50 characters: the function, its role and its schedule are named <consumer>-reconciler, the schedule's role <consumer>-schedule. Another name makes others."
  nullable    = false
  type        = string
}

variable "environment" {
  description = "Environment variables of the function, at most 4 KB in all."
  nullable    = false
  type        = map(string)
}

variable "function" {
  description = "What the reconciler has in common with the worker, as in the root module's variable of this name. The boundary is that of both roles."
  nullable    = false

  type = object({
    architecture         = string
    permissions_boundary = string
    runtime              = string
    vpc                  = object({ security_group_ids = list(string), subnet_ids = list(string) })
  })
}

variable "kms_key_arn" {
  default     = null
  description = "ARN of the KMS key that the ledger and the topic use; the function may use it, and its environment and log group are encrypted with it. Null = no key of your own."
  type        = string
}

variable "ledger_table_arn" {
  description = "ARN of the ledger table, with the index pending: the function may query the index, and read and mark rows of the table."
  nullable    = false
  type        = string
}

variable "log_retention_days" {
  description = "Days that the function's log is kept, one of CloudWatch's values; 0 keeps it for ever."
  nullable    = false
  type        = number
}

variable "reconciler" {
  description = "How often and how large a run is, as in the root module's variable of this name: interval_minutes 1 to 1440, memory_mb 256 to 10240, timeout_seconds 30 to 900 and at most the interval."
  nullable    = false

  type = object({
    interval_minutes = number
    memory_mb        = number
    policy_documents = list(string)
    timeout_seconds  = number
  })
}

variable "tags" {
  default     = {}
  description = "Tags of the function, its role and log group, and of the schedule's role; a schedule has none."
  nullable    = false
  type        = map(string)
}

variable "topic_arns" {
  description = "The topic that the function may publish to, as a list of none or one: its length is known while the ARN is not."
  nullable    = false
  type        = list(string)
}
