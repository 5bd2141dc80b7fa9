variable "batch_size" {
  default     = 4
  description = "Messages in one call of the function, 1 to 10000; on FIFO at most 10. More than 10 needs function.batching_window_seconds of 1 or more. The effects of a batch run one after the other, so function.timeout_seconds is at least batch_size x operation.effect_timeout_seconds + 16."
  nullable    = false
  type        = number

  validation {
    condition     = floor(var.batch_size) == var.batch_size && var.batch_size >= 1 && var.batch_size <= 10000
    error_message = "batch_size is ${var.batch_size}, but must be a whole number from 1 to 10000."
  }

  validation {
    condition     = !var.queue.fifo || var.batch_size <= 10
    error_message = "batch_size is ${var.batch_size}, but with queue.fifo it is at most 10."
  }

  validation {
    condition     = var.queue.fifo || var.batch_size <= 10 || try(var.function.batching_window_seconds >= 1, false)
    error_message = "batch_size is ${var.batch_size} and function.batching_window_seconds is ${jsonencode(var.function.batching_window_seconds)}: a batch of more than 10 needs a batching window of at least 1 second."
  }

  # No effect starts that could outlast the function, with the claim before it and the record after it.
  validation {
    condition     = var.batch_size * var.operation.effect_timeout_seconds + 16 <= var.function.timeout_seconds
    error_message = "batch_size is ${var.batch_size}, operation.effect_timeout_seconds is ${var.operation.effect_timeout_seconds} and function.timeout_seconds is ${var.function.timeout_seconds}: the effects of a batch run one after the other, and the claim before an effect and the record after it may take 7 seconds each, so the timeout must be at least ${var.batch_size * var.operation.effect_timeout_seconds + 16} seconds (${var.batch_size} x ${var.operation.effect_timeout_seconds} + 16), or messages come back unprocessed and reach the dead-letter queue."
  }
}

variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the ledger. Set it to false and apply before you destroy it. A lost ledger means that the effects of all messages still in a queue are repeated."
  nullable    = false
  type        = bool
}

variable "encryption" {
  default     = {}
  description = "Encryption at rest. kms_key_arn is the ARN of a KMS key of your own for the queues, ledger, log group and the function's environment; null uses the keys that AWS manages. The key's policy must let logs.<region>.amazonaws.com use it, and each producer's service (sns, events or s3.amazonaws.com: kms:Decrypt, kms:GenerateDataKey), else the apply fails or messages vanish on their way to the queue."
  nullable    = false

  type = object({
    kms_key_arn = optional(string)
  })

  validation {
    condition     = var.encryption.kms_key_arn == null ? true : !can(regex("(^|:)alias/", var.encryption.kms_key_arn))
    error_message = "encryption.kms_key_arn is ${jsonencode(var.encryption.kms_key_arn)}, an alias: a role's rights hold for a key, not for an alias, and the alias/aws/… keys cannot be opened to SNS, EventBridge or S3. Give the key's ARN."
  }

  validation {
    condition     = var.encryption.kms_key_arn == null ? true : can(regex("^arn:[a-z0-9-]+:kms:[a-z0-9-]+:[0-9]{12}:(key/[A-Za-z0-9-]+|alias/.*)$|^alias/", var.encryption.kms_key_arn))
    error_message = "encryption.kms_key_arn is ${jsonencode(var.encryption.kms_key_arn)}, but must be the ARN of a KMS key: arn:<partition>:kms:<region>:<account>:key/<id>."
  }
}

variable "log_retention_days" {
  default     = 30
  description = "Days that the function's log is kept, one of CloudWatch's values (1, 3, 5, 7, 14, 30, …, 3653); 0 keeps them for ever. Older lines are deleted."
  nullable    = false
  type        = number

  validation {
    condition = contains(
      [0, 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653],
      var.log_retention_days
    )
    error_message = "log_retention_days is ${var.log_retention_days}, but CloudWatch takes 0 (for ever), 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288 or 3653."
  }
}

variable "name" {
  description = "Name of the operation: 1 to 50 letters, digits, - and _. The queues, ledger, function, role, alarms and dashboard are named after it; another name makes new, empty ones, and other idempotency keys. Roles are global: two consumers or operations of an account need two names, in different Regions too."
  nullable    = false
  type        = string

  # 64 characters is Lambda's and IAM's limit, 80 that of SQS. The rest is room for names to come.
  validation {
    condition     = can(regex("^[A-Za-z0-9][A-Za-z0-9_-]{0,49}$", var.name))
    error_message = "name is ${jsonencode(var.name)}, but must be 1 to 50 letters, digits, - and _, beginning with a letter or digit: names such as ${var.name}-worker and ${var.name}-dlq.fifo must fit Lambda's 64 and SQS's 80 characters."
  }
}

variable "tags" {
  default     = {}
  description = "Tags of everything that is created, at most 50: keys of 1 to 128 characters, values of at most 256. Keys must not begin with aws:, which belongs to AWS."
  nullable    = false
  type        = map(string)

  validation {
    condition     = length(var.tags) <= 50 && alltrue([for key in keys(var.tags) : !startswith(lower(key), "aws:")])
    error_message = "tags has ${length(var.tags)} keys (${join(", ", keys(var.tags))}), but may have at most 50, and none that begins with aws:."
  }

  validation {
    condition     = alltrue([for key, value in var.tags : length(key) >= 1 && length(key) <= 128 && try(length(value) <= 256, true)])
    error_message = "tags has ${join(", ", [for key, value in var.tags : "${jsonencode(key)} with a value of ${try(length(value), 0)} characters" if length(key) < 1 || length(key) > 128 || try(length(value) > 256, false)])}, but a key has 1 to 128 characters and a value at most 256."
  }
}

variable "ttl_window_days" {
  default     = 30
  description = "Whole days that an event is remembered after it was completed or failed, at most 3650 and at least queue.retention_days + queue.dead_letter_retention_days. A duplicate that comes later repeats the effect, unless the provider still knows its key."
  nullable    = false
  type        = number

  validation {
    condition     = floor(var.ttl_window_days) == var.ttl_window_days && var.ttl_window_days >= 1 && var.ttl_window_days <= 3650
    error_message = "ttl_window_days is ${var.ttl_window_days}, but must be a whole number of days, 1 to 3650."
  }

  validation {
    condition     = var.ttl_window_days >= ceil(var.queue.retention_days + var.queue.dead_letter_retention_days)
    error_message = "ttl_window_days is ${var.ttl_window_days}, below queue.retention_days (${var.queue.retention_days}) + queue.dead_letter_retention_days (${var.queue.dead_letter_retention_days}): a message could come back after its event was forgotten. Raise ttl_window_days, or lower one of the two."
  }
}
