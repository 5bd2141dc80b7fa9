variable "dead_letter_retention_days" {
  default     = 14
  description = "Days that a message stays in the dead-letter queue, 60 seconds (0.0007) to 14; then it is lost. On a standard queue they count from the first send, so it must be more than retention_days."
  nullable    = false
  type        = number

  validation {
    condition     = var.dead_letter_retention_days * 86400 >= 60 && var.dead_letter_retention_days <= 14
    error_message = "dead_letter_retention_days is ${var.dead_letter_retention_days}, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days."
  }

  validation {
    condition     = var.fifo || var.dead_letter_retention_days > var.retention_days
    error_message = "dead_letter_retention_days is ${var.dead_letter_retention_days}, not above retention_days (${var.retention_days}): a standard queue counts from the first send in the dead-letter queue too, so a late failure would be lost at once. Raise it, or lower retention_days."
  }
}

variable "fifo" {
  default     = false
  description = "Whether both queues keep the order of each message group. A change makes new, empty queues."
  nullable    = false
  type        = bool
}

variable "kms_key_arn" {
  default     = null
  description = "ARN of the KMS key for both queues; null uses the key that SQS manages. The key's policy must let each producer's service use it (kms:Decrypt, kms:GenerateDataKey), else messages vanish on their way."
  type        = string

  validation {
    condition     = var.kms_key_arn == null ? true : can(regex("^arn:[a-z0-9-]+:kms:[a-z0-9-]+:[0-9]{12}:key/", var.kms_key_arn))
    error_message = "kms_key_arn is ${jsonencode(var.kms_key_arn)}, but must be the ARN of a KMS key, no alias: the alias/aws/… keys cannot be opened to SNS, EventBridge or S3."
  }
}

variable "max_receive_count" {
  default     = 5
  description = "Receives before a message goes to the dead-letter queue, 3 to 1000. Throttles and crashes count, and on FIFO waiting behind a failed message does too: 10 is wise there."
  nullable    = false
  type        = number

  validation {
    condition     = floor(var.max_receive_count) == var.max_receive_count && var.max_receive_count >= 3 && var.max_receive_count <= 1000
    error_message = "max_receive_count is ${var.max_receive_count}, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive."
  }

  validation {
    condition     = var.retention_days * 86400 < 60 ? true : var.max_receive_count * var.visibility_timeout_seconds < floor(var.retention_days * 86400 + 0.5)
    error_message = "max_receive_count (${var.max_receive_count}) x visibility_timeout_seconds (${var.visibility_timeout_seconds}) must be below retention_days (${var.retention_days}, in seconds ${floor(var.retention_days * 86400 + 0.5)}): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower one of the two, or raise retention_days."
  }
}

variable "name" {
  description = "Name of the queue, 1 to 71 letters, digits, - and _; the dead-letter queue's ends in -dlq, and both in .fifo with fifo. Another name makes new, empty queues."
  nullable    = false
  type        = string

  validation {
    condition     = can(regex("^[A-Za-z0-9_-]{1,71}$", var.name))
    error_message = "name is ${jsonencode(var.name)}, but must be 1 to 71 letters, digits, - and _: ${var.name}-dlq.fifo must fit SQS's 80 characters."
  }
}

variable "producers" {
  default     = []
  description = "The AWS services that may send to the queue: service is sns.amazonaws.com (sns.<region>.amazonaws.com for a topic of an opt-in Region that sends to another Region), events.amazonaws.com or s3.amazonaws.com, source_arn the topic, rule or bucket, source_account the bucket's account if it is not the queue's. Without one a service's messages are refused."
  nullable    = false

  type = list(object({
    service        = string
    source_account = optional(string)
    source_arn     = string
  }))

  validation {
    condition     = alltrue([for p in var.producers : can(regex("^((events|s3|sns)|sns\\.[a-z]+(-[a-z]+)+-[0-9]+)\\.amazonaws\\.com$", p.service))])
    error_message = "producers names the services ${join(", ", [for p in var.producers : jsonencode(p.service)])}, but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com."
  }

  validation {
    condition = alltrue([
      for p in var.producers : can(regex(lookup({
        events = "^arn:[a-z0-9-]+:events:[a-z0-9-]+:[0-9]{12}:rule/[A-Za-z0-9._/-]+$"
        s3     = "^arn:[a-z0-9-]+:s3:::[a-z0-9.-]{3,63}$"
        sns    = "^arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+(\\.fifo)?$"
      }, split(".", p.service)[0], ""), p.source_arn))
    ])
    error_message = "producers has the sources ${join(", ", [for p in var.producers : "${p.source_arn} for ${p.service}"])}, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards."
  }

  validation {
    condition = alltrue([
      for p in var.producers :
      p.source_account == null ? true : p.service == "s3.amazonaws.com" && can(regex("^[0-9]{12}$", p.source_account))
    ])
    error_message = "producers has the source_account ${join(", ", compact([for p in var.producers : p.source_account]))}, but only s3.amazonaws.com takes one, of 12 digits: the other ARNs name their account."
  }

  validation {
    condition     = !var.fifo || alltrue([for p in var.producers : p.service != "s3.amazonaws.com"])
    error_message = "producers has s3.amazonaws.com and fifo is true: S3 cannot send to a FIFO queue. Leave fifo false, or let EventBridge send what S3 tells it (events.amazonaws.com)."
  }

  validation {
    condition     = !var.fifo || alltrue([for p in var.producers : !startswith(p.service, "sns.") || endswith(p.source_arn, ".fifo")])
    error_message = "producers has the topics ${join(", ", [for p in var.producers : p.source_arn if startswith(p.service, "sns.")])} and fifo is true: only a FIFO topic (.fifo) can send to a FIFO queue."
  }
}

variable "retention_days" {
  default     = 4
  description = "Days that a message waits in the queue, 60 seconds (0.0007) to 14; then it is lost."
  nullable    = false
  type        = number

  validation {
    condition     = var.retention_days * 86400 >= 60 && var.retention_days <= 14
    error_message = "retention_days is ${var.retention_days}, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days."
  }
}

variable "tags" {
  default     = {}
  description = "Tags of both queues."
  nullable    = false
  type        = map(string)
}

variable "visibility_timeout_seconds" {
  default     = 180
  description = "Seconds until a message in work is given out again, 0 to 43200: at least the consumer's timeout, better six times that. Too short means that messages are processed twice at a time."
  nullable    = false
  type        = number

  validation {
    condition     = floor(var.visibility_timeout_seconds) == var.visibility_timeout_seconds && var.visibility_timeout_seconds >= 0 && var.visibility_timeout_seconds <= 43200
    error_message = "visibility_timeout_seconds is ${var.visibility_timeout_seconds}, but must be a whole number from 0 to 43200 (12 hours)."
  }
}
