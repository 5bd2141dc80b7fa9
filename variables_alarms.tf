variable "alarms" {
  default     = {}
  description = <<-EOT
    The alarms of the consumer. A message in the dead-letter queue and a misconfiguration always set one off.
    - actions: ARNs told when an alarm goes off and when it clears, at most 5. With none, or a topic that nobody subscribed to, nobody hears of it.
    - duration_percent: percent of function.timeout_seconds, 1 to 100; a longer call sets off the alarm.
    - errors, throttles: failed or throttled calls in five minutes, 0 or more; one more sets off the alarm.
    - oldest_message_age_seconds: 60 or more and below queue.retention_days; an older message sets off the alarm. Null means 3600, or half the retention if that is less.
  EOT
  nullable    = false

  type = object({
    actions                    = optional(list(string), [])
    duration_percent           = optional(number, 80)
    errors                     = optional(number, 0)
    oldest_message_age_seconds = optional(number)
    throttles                  = optional(number, 0)
  })

  validation {
    condition     = length(var.alarms.actions) <= 5
    error_message = "alarms.actions has ${length(var.alarms.actions)} ARNs, but CloudWatch takes at most 5."
  }

  validation {
    condition     = alltrue([for arn in var.alarms.actions : can(regex("^arn:[a-z0-9-]+:[a-z0-9-]+:", arn))])
    error_message = "alarms.actions is ${jsonencode(var.alarms.actions)}, but must hold ARNs only, such as those of SNS topics."
  }

  validation {
    condition     = var.alarms.duration_percent >= 1 && var.alarms.duration_percent <= 100
    error_message = "alarms.duration_percent is ${var.alarms.duration_percent}, but must be from 1 to 100: no call takes longer than the timeout."
  }

  validation {
    condition     = floor(var.alarms.errors) == var.alarms.errors && var.alarms.errors >= 0
    error_message = "alarms.errors is ${var.alarms.errors}, but must be a whole number, 0 or more."
  }

  validation {
    condition     = floor(var.alarms.throttles) == var.alarms.throttles && var.alarms.throttles >= 0
    error_message = "alarms.throttles is ${var.alarms.throttles}, but must be a whole number, 0 or more."
  }

  validation {
    condition = (
      var.alarms.oldest_message_age_seconds == null ? true :
      var.alarms.oldest_message_age_seconds >= 60 && var.alarms.oldest_message_age_seconds < var.queue.retention_days * 86400
    )
    error_message = "alarms.oldest_message_age_seconds is ${jsonencode(var.alarms.oldest_message_age_seconds)}, but must be at least 60 and below queue.retention_days (${var.queue.retention_days}, in seconds ${var.queue.retention_days * 86400}): an older message is gone, so the alarm could not go off."
  }
}
