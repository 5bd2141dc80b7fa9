variable "event" {
  default     = {}
  description = <<-EOT
    How an event is found in a message. All paths are JMESPath into the event. Terraform cannot check them: with a mistake in one the function does not start, which sets off the errors alarm.
    - envelope: raw (the JSON body), sns (the Message in an SNS envelope), eventbridge (the whole event) or s3 (each record of a notification). It is not guessed: messages of another shape are dead-lettered.
    - id: the event's identity, 1 to 2048 bytes; null means id, and for s3 bucket/key/version/sequencer. Two events with one id are one event. Change it only while both queues are empty and no event is unfinished: with another id an event that is still in a queue is a new one, with another idempotency key, and its effect is repeated.
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

  validation {
    condition     = var.event.envelope != "s3" || !var.queue.fifo
    error_message = "event.envelope is \"s3\" and queue.fifo is true: S3 cannot send to a FIFO queue. Leave queue.fifo false, or let EventBridge send what S3 tells it (event.envelope = \"eventbridge\")."
  }
}
