variable "actions" {
  default     = []
  description = "ARNs that each alarm notifies when it goes off and when it clears, at most 5. With none the alarms only change colour."
  nullable    = false
  type        = list(string)
}

variable "at_risk_actions" {
  default     = []
  description = "ARNs that the composite alarm notifies when it goes off and when it clears, at most 5: those who act at once."
  nullable    = false
  type        = list(string)
}

variable "business_table_name" {
  default     = null
  description = "Name of the business table, for the dashboard; with an operation or a workflow, which have none, it is not used."
  type        = string
}

variable "conflicts_threshold" {
  default     = 0
  description = "Conflicts in five minutes, 0 or more: one more than this sets off the conflicts alarm, which a workflow does not have."
  nullable    = false
  type        = number
}

variable "consumer_name" {
  description = "Name of the consumer: the alarms' names begin with it, the dashboard has it, and it is the Consumer dimension of the consumer's own metrics."
  nullable    = false
  type        = string
}

variable "dashboard" {
  default     = true
  description = "Whether the dashboard is made; AWS charges for more than three."
  nullable    = false
  type        = bool
}

variable "dead_letter_queue_name" {
  description = "Name (no URL or ARN) of the dead-letter queue; any visible message in it sets off its alarm."
  nullable    = false
  type        = string
}

variable "duration_threshold_ms" {
  description = "Milliseconds, above 0: a call that takes longer sets off the duration alarm."
  nullable    = false
  type        = number
}

variable "errors_threshold" {
  default     = 0
  description = "Failed calls in five minutes, 0 or more: one more than this sets off the errors alarm, or a workflow's guard-errors alarm."
  nullable    = false
  type        = number
}

variable "function_name" {
  description = "Name of the function."
  nullable    = false
  type        = string
}

variable "ledger_table_name" {
  description = "Name of the ledger table, or of a workflow's idempotency table, for the dashboard."
  nullable    = false
  type        = string
}

variable "oldest_message_age_seconds" {
  description = "Seconds, below the queue's retention: an older message in the queue sets off the oldest-message alarm."
  nullable    = false
  type        = number
}

variable "operation" {
  default     = null
  description = "Null for a pipeline or a workflow. For an operation, failed_threshold: failed effects in five minutes, 0 or more; one more than this sets off the failed alarm. An operation has the alarm outcome-unknown too, and lines of its own on the dashboard."
  type        = object({ failed_threshold = number })
}

variable "queue_name" {
  description = "Name (no URL or ARN) of the queue that the consumer reads."
  nullable    = false
  type        = string
}

variable "reconciler_function_names" {
  default     = []
  description = "The reconciler's function, as a list of none or one: its length is known while the name may not be. With none its alarms are left out."
  nullable    = false
  type        = list(string)
}

variable "reconciler_interval_minutes" {
  default     = 5
  description = "Minutes from run to run of the reconciler, 1 to 1440: its alarms and the misconfigured alarm look at as long a time, and at five minutes at least; the reconciler-silent alarm at three times as long, and at 15 minutes at least."
  nullable    = false
  type        = number
}

variable "region" {
  description = "Region of the metrics other than the topic's, for the dashboard."
  nullable    = false
  type        = string
}

variable "rejected_threshold" {
  default     = 0
  description = "Rejected events in five minutes, 0 or more: one more than this sets off the rejected alarm."
  nullable    = false
  type        = number
}

variable "stale_pending_threshold" {
  default     = 0
  description = "Committed events that a run of the reconciler leaves unannounced, 0 or more: one more than this sets off the stale-pending alarm."
  nullable    = false
  type        = number
}

variable "tags" {
  default     = {}
  description = "Tags of the alarms; a dashboard has none."
  nullable    = false
  type        = map(string)
}

variable "throttles_threshold" {
  default     = 0
  description = "Throttled calls in five minutes, 0 or more: one more than this sets off the throttles alarm."
  nullable    = false
  type        = number
}

variable "topic_arns" {
  default     = []
  description = "The topic that notifications go to, as a list of none or one: its length is known while the ARN may not be. With none the dashboard has no part on it; the Region of its part is the topic's."
  nullable    = false
  type        = list(string)
}
