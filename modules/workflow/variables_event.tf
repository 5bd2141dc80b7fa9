variable "event" {
  default     = {}
  description = <<-EOT
    How an event is found in a message. All paths are JMESPath into the event. Terraform cannot check them: with a mistake in one the function does not start, which sets off the errors alarm.
    - envelope: raw (the JSON body), sns (the Message in an SNS envelope), eventbridge (the whole event) or s3 (each record of a notification). It is not guessed: messages of another shape are dead-lettered.
    - id: the business key, 1 to 2048 bytes; null means the message's own id, and for s3 bucket/key/version/sequencer. All deliveries of a message have one id, and so has a letter of this module that is sent back; but an event that its producer sends twice, or a letter that SQS made itself and that is moved back, comes with a new one, and its effect can run again. Two events with one key are one. Change it only while both queues are empty: with another key an event that is still in a queue is a new one, and its effect is repeated.
    - fingerprint: the part whose change makes the same id a conflict; null means the whole event, and for eventbridge source, detail-type and detail. Change it only while both queues are empty: an event that is known already, but still in a queue, would become a conflict.
  EOT
  nullable    = false

  type = object({
    envelope    = optional(string, "raw")
    fingerprint = optional(string)
    id          = optional(string)
  })

  validation {
    condition     = contains(["eventbridge", "raw", "s3", "sns"], var.event.envelope)
    error_message = "event.envelope is ${jsonencode(var.event.envelope)}, but must be raw, sns, eventbridge or s3."
  }

  validation {
    condition = alltrue([
      for path in [var.event.fingerprint, var.event.id] :
      path == null ? true : trimspace(path) != ""
    ])
    error_message = "event has a blank path (fingerprint ${jsonencode(var.event.fingerprint)}, id ${jsonencode(var.event.id)}): a blank is no JMESPath. Leave it out for the default."
  }
}
