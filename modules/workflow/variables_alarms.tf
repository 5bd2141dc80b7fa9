variable "alarms" {
  default     = {}
  description = <<-EOT
    The alarms of the workflow, and its dashboard. A message in the dead-letter queue, an execution that was stopped or ran out of time, a misconfiguration and a loop that Lambda broke up always set one off.
    - actions: ARNs told when an alarm goes off and when it clears, at most 5. With none, or a topic that nobody subscribed to, nobody hears of it.
    - at_risk_actions: the same for the alarm <name>-events-at-risk alone, which is on while events are lost if nobody acts: dead letters, executions that ended without one, misconfiguration, an old message, or a loop. Give a pager here and a chat in actions.
    - dashboard: whether the dashboard <name> is made; AWS charges for more than three.
    - duration_percent: percent of function.timeout_seconds, 1 to 100; a longer call of the starter sets off the alarm.
    - errors, throttles: failed or throttled calls of the starter in five minutes, 0 or more; one more sets off the alarm. errors is for the guard too.
    - executions_failed: executions in five minutes, 0 or more, that failed and dead-lettered their message; one more sets off the alarm.
    - executions_throttled: transitions between states in five minutes, 0 or more, that Step Functions held up; one more sets off the alarm.
    - oldest_message_age_seconds: 60 or more and below queue.retention_days; an older message sets off the alarm. Null means 3600, or half the retention if that is less.
    - rejected: events in five minutes, 0 or more, that were dead-lettered because they can never succeed; one more sets off the alarm.
  EOT
  nullable    = false

  type = object({
    actions                    = optional(list(string), [])
    at_risk_actions            = optional(list(string), [])
    dashboard                  = optional(bool, true)
    duration_percent           = optional(number, 80)
    errors                     = optional(number, 0)
    executions_failed          = optional(number, 0)
    executions_throttled       = optional(number, 0)
    oldest_message_age_seconds = optional(number)
    rejected                   = optional(number, 0)
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
    condition     = length(var.alarms.at_risk_actions) <= 5
    error_message = "alarms.at_risk_actions has ${length(var.alarms.at_risk_actions)} ARNs, but CloudWatch takes at most 5."
  }

  validation {
    condition     = alltrue([for arn in var.alarms.at_risk_actions : can(regex("^arn:[a-z0-9-]+:[a-z0-9-]+:", arn))])
    error_message = "alarms.at_risk_actions is ${jsonencode(var.alarms.at_risk_actions)}, but must hold ARNs only, such as those of SNS topics."
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
    condition     = floor(var.alarms.executions_failed) == var.alarms.executions_failed && var.alarms.executions_failed >= 0
    error_message = "alarms.executions_failed is ${var.alarms.executions_failed}, but must be a whole number, 0 or more."
  }

  validation {
    condition     = floor(var.alarms.executions_throttled) == var.alarms.executions_throttled && var.alarms.executions_throttled >= 0
    error_message = "alarms.executions_throttled is ${var.alarms.executions_throttled}, but must be a whole number, 0 or more."
  }

  validation {
    condition     = floor(var.alarms.rejected) == var.alarms.rejected && var.alarms.rejected >= 0
    error_message = "alarms.rejected is ${var.alarms.rejected}, but must be a whole number, 0 or more."
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
