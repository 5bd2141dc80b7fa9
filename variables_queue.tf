variable "queue" {
  default     = {}
  description = <<-EOT
    The queue and its dead-letter queue.
    - fifo: whether both keep the order of each message group. A change makes new, empty queues.
    - retention_days: days that a message waits, 60 seconds (0.0007) to 14; then it is lost.
    - dead_letter_retention_days: the same in the dead-letter queue. On a standard queue the days count from the first send, so it must be more than retention_days.
    - backoff_max_seconds: seconds, 0 to 39600 (11 hours), that a message which has to be tried again is hidden at most: its wait is drawn between the visibility timeout and twice that, four times, … up to this. At or below the visibility timeout all waits are that long. Null means 900, less if the retention would not last for it, and at least the visibility timeout.
    - max_receive_count: receives before a message goes to the dead-letter queue, 3 to 1000; null means 5, and 10 with fifo, where waiting behind a failed message counts too.
    - visibility_timeout_seconds: seconds until a message in work is given out again, at least function.timeout_seconds + function.batching_window_seconds, at most 43200; null means 6 x timeout + window.
    - producers: the AWS services that may send: service is sns.amazonaws.com (sns.<region>.amazonaws.com for a topic of an opt-in Region that sends to another Region), events.amazonaws.com or s3.amazonaws.com, source_arn the topic, rule or bucket, source_account the bucket's account if it is not the queue's.
  EOT
  nullable    = false

  type = object({
    backoff_max_seconds        = optional(number)
    dead_letter_retention_days = optional(number, 14)
    fifo                       = optional(bool, false)
    max_receive_count          = optional(number)
    producers = optional(list(object({
      service        = string
      source_account = optional(string)
      source_arn     = string
    })), [])
    retention_days             = optional(number, 4)
    visibility_timeout_seconds = optional(number)
  })

  validation {
    condition = (
      var.queue.backoff_max_seconds == null ? true :
      floor(var.queue.backoff_max_seconds) == var.queue.backoff_max_seconds &&
      var.queue.backoff_max_seconds >= 0 && var.queue.backoff_max_seconds <= 39600
    )
    error_message = "queue.backoff_max_seconds is ${jsonencode(var.queue.backoff_max_seconds)}, but must be a whole number from 0 to 39600 (11 hours): SQS hides a message for 12 hours at most, counted from its receive."
  }

  validation {
    condition     = var.queue.retention_days * 86400 >= 60 && var.queue.retention_days <= 14
    error_message = "queue.retention_days is ${var.queue.retention_days}, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days."
  }

  validation {
    condition     = var.queue.dead_letter_retention_days * 86400 >= 60 && var.queue.dead_letter_retention_days <= 14
    error_message = "queue.dead_letter_retention_days is ${var.queue.dead_letter_retention_days}, but SQS keeps a message from 60 seconds (0.0007 days) to 14 days."
  }

  validation {
    condition     = var.queue.fifo || var.queue.dead_letter_retention_days > var.queue.retention_days
    error_message = "queue.dead_letter_retention_days is ${var.queue.dead_letter_retention_days}, not above queue.retention_days (${var.queue.retention_days}): a standard queue counts from the first send in the dead-letter queue too, so a late failure would be lost at once. Raise it, or lower queue.retention_days."
  }

  validation {
    condition = (
      var.queue.max_receive_count == null ? true :
      floor(var.queue.max_receive_count) == var.queue.max_receive_count && var.queue.max_receive_count >= 3 && var.queue.max_receive_count <= 1000
    )
    error_message = "queue.max_receive_count is ${jsonencode(var.queue.max_receive_count)}, but must be a whole number from 3 to 1000 (5 or more is wise): a throttle, a deployment or a crash counts as a receive."
  }

  validation {
    condition = (
      var.queue.visibility_timeout_seconds == null ? true :
      floor(var.queue.visibility_timeout_seconds) == var.queue.visibility_timeout_seconds && var.queue.visibility_timeout_seconds <= 43200
    )
    error_message = "queue.visibility_timeout_seconds is ${jsonencode(var.queue.visibility_timeout_seconds)}, but must be a whole number, at most 43200 (12 hours)."
  }

  validation {
    condition = (
      var.queue.visibility_timeout_seconds == null ? true :
      var.queue.visibility_timeout_seconds >= var.function.timeout_seconds
    )
    error_message = "queue.visibility_timeout_seconds is ${jsonencode(var.queue.visibility_timeout_seconds)}, below function.timeout_seconds (${var.function.timeout_seconds}): a message would come back while it is still being processed. Raise it, or leave it null."
  }

  validation {
    condition = (
      var.queue.visibility_timeout_seconds == null ? true :
      var.queue.visibility_timeout_seconds < var.function.timeout_seconds ? true :
      var.queue.visibility_timeout_seconds >= var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0)
    )
    error_message = "queue.visibility_timeout_seconds is ${jsonencode(var.queue.visibility_timeout_seconds)}, below function.timeout_seconds (${var.function.timeout_seconds}) + function.batching_window_seconds (${jsonencode(var.function.batching_window_seconds)}): a message would come back while its batch is gathered or processed. Raise it, or leave it null."
  }

  # Written out, because a validation of var.queue cannot refer to what is built from it.
  validation {
    condition = (
      var.queue.retention_days * 86400 < 60 ? true :
      coalesce(var.queue.max_receive_count, var.queue.fifo ? 10 : 5) * max(
        coalesce(var.queue.visibility_timeout_seconds, 6 * var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0)),
        coalesce(var.queue.backoff_max_seconds, 0)
      ) < floor(var.queue.retention_days * 86400 + 0.5)
    )
    error_message = "queue.max_receive_count (${coalesce(var.queue.max_receive_count, var.queue.fifo ? 10 : 5)}) x the larger of queue.visibility_timeout_seconds (${coalesce(var.queue.visibility_timeout_seconds, 6 * var.function.timeout_seconds + coalesce(var.function.batching_window_seconds, 0))}) and queue.backoff_max_seconds (${jsonencode(var.queue.backoff_max_seconds)}) must be below queue.retention_days (${var.queue.retention_days}, in seconds ${floor(var.queue.retention_days * 86400 + 0.5)}): a message that fails each time would expire in the queue and never reach the dead-letter queue. Lower queue.max_receive_count or the larger of the two, or raise queue.retention_days."
  }

  # Even 0 is refused by AWS: the window has to be left out.
  validation {
    condition     = !var.queue.fifo || var.function.batching_window_seconds == null
    error_message = "queue.fifo is true and function.batching_window_seconds is ${jsonencode(var.function.batching_window_seconds)}: a FIFO queue takes no batching window, not even 0. Leave it null."
  }

  validation {
    condition     = alltrue([for p in var.queue.producers : can(regex("^((events|s3|sns)|sns\\.[a-z]+(-[a-z]+)+-[0-9]+)\\.amazonaws\\.com$", p.service))])
    error_message = "queue.producers names the services ${join(", ", [for p in var.queue.producers : jsonencode(p.service)])}, but a service is sns.amazonaws.com (or sns.<region>.amazonaws.com), events.amazonaws.com or s3.amazonaws.com."
  }

  validation {
    condition = alltrue([
      for p in var.queue.producers : can(regex(lookup({
        events = "^arn:[a-z0-9-]+:events:[a-z0-9-]+:[0-9]{12}:rule/[A-Za-z0-9._/-]+$"
        s3     = "^arn:[a-z0-9-]+:s3:::[a-z0-9.-]{3,63}$"
        sns    = "^arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+(\\.fifo)?$"
      }, split(".", p.service)[0], ""), p.source_arn))
    ])
    error_message = "queue.producers has the sources ${join(", ", [for p in var.queue.producers : "${p.source_arn} for ${p.service}"])}, but a source_arn is the ARN of the service's own topic (sns), rule (events) or bucket (s3), without wildcards."
  }

  validation {
    condition = alltrue([
      for p in var.queue.producers :
      p.source_account == null ? true : p.service == "s3.amazonaws.com" && can(regex("^[0-9]{12}$", p.source_account))
    ])
    error_message = "queue.producers has the source_account ${join(", ", compact([for p in var.queue.producers : p.source_account]))}, but only s3.amazonaws.com takes one, of 12 digits: the other ARNs name their account."
  }

  validation {
    condition     = !var.queue.fifo || alltrue([for p in var.queue.producers : p.service != "s3.amazonaws.com"])
    error_message = "queue.producers has s3.amazonaws.com and queue.fifo is true: S3 cannot send to a FIFO queue. Leave queue.fifo false, or let EventBridge send what S3 tells it (events.amazonaws.com)."
  }

  validation {
    condition     = !var.queue.fifo || alltrue([for p in var.queue.producers : !startswith(p.service, "sns.") || endswith(p.source_arn, ".fifo")])
    error_message = "queue.producers has the topics ${join(", ", [for p in var.queue.producers : p.source_arn if startswith(p.service, "sns.")])} and queue.fifo is true: only a FIFO topic (.fifo) can send to a FIFO queue."
  }
}
