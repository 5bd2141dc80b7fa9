variable "actions" {
  default     = []
  description = "ARNs that each alarm notifies when it goes off and when it clears, at most 5. With none the alarms only change colour."
  nullable    = false
  type        = list(string)
}

variable "consumer_name" {
  description = "Name of the consumer: the alarms' names begin with it, and it is the Consumer dimension of the consumer's own metrics."
  nullable    = false
  type        = string
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
  description = "Failed calls in five minutes, 0 or more: one more than this sets off the errors alarm."
  nullable    = false
  type        = number
}

variable "function_name" {
  description = "Name of the function."
  nullable    = false
  type        = string
}

variable "oldest_message_age_seconds" {
  description = "Seconds, below the queue's retention: an older message in the queue sets off the oldest-message alarm."
  nullable    = false
  type        = number
}

variable "queue_name" {
  description = "Name (no URL or ARN) of the queue that the consumer reads."
  nullable    = false
  type        = string
}

variable "tags" {
  default     = {}
  description = "Tags of the alarms."
  nullable    = false
  type        = map(string)
}

variable "throttles_threshold" {
  default     = 0
  description = "Throttled calls in five minutes, 0 or more: one more than this sets off the throttles alarm."
  nullable    = false
  type        = number
}
