variable "business_table" {
  default     = {}
  description = <<-EOT
    The table that business_table_name names.
    - create: false uses an existing table; its key is compared with the one given here at each plan. A KMS key of its own needs a policy document in function.policy_documents.
    - hash_key, range_key: attribute names, 1 to 255 characters; range_key null means none. Another key makes another, empty table.
    - hash_key_type, range_key_type: S (string) or N (number). An event whose value has another type is dead-lettered.
  EOT
  nullable    = false

  type = object({
    create         = optional(bool, true)
    hash_key       = optional(string, "id")
    hash_key_type  = optional(string, "S")
    range_key      = optional(string)
    range_key_type = optional(string, "S")
  })

  validation {
    condition     = contains(["N", "S"], var.business_table.hash_key_type)
    error_message = "business_table.hash_key_type is ${jsonencode(var.business_table.hash_key_type)}, but must be S or N."
  }

  validation {
    condition     = contains(["N", "S"], var.business_table.range_key_type)
    error_message = "business_table.range_key_type is ${jsonencode(var.business_table.range_key_type)}, but must be S or N."
  }

  validation {
    condition = alltrue([
      for key in [var.business_table.hash_key, var.business_table.range_key] :
      key == null ? true : trimspace(key) != "" && length(key) <= 255
    ])
    error_message = "business_table.hash_key is ${jsonencode(var.business_table.hash_key)} and range_key ${jsonencode(var.business_table.range_key)}, but a key's name is 1 to 255 characters, not blank."
  }

  validation {
    condition     = var.business_table.range_key == null ? true : var.business_table.range_key != var.business_table.hash_key
    error_message = "business_table.range_key is ${jsonencode(var.business_table.range_key)}, which is business_table.hash_key too: a table has two keys or one."
  }

  # The consumer writes these attributes itself.
  validation {
    condition = alltrue([
      for key in [var.business_table.hash_key, var.business_table.range_key] :
      key == null ? true : !contains(["event_committed_at", "event_consumer", "event_fingerprint", "event_version"], key)
    ])
    error_message = "business_table.hash_key is ${jsonencode(var.business_table.hash_key)} and range_key ${jsonencode(var.business_table.range_key)}, but event_committed_at, event_consumer, event_fingerprint and event_version are attributes that the consumer writes: they cannot be a key."
  }

  validation {
    condition = (
      (var.business_table.hash_key != "event_id" || var.business_table.hash_key_type == "S") &&
      (var.business_table.range_key == null ? true : var.business_table.range_key != "event_id" || var.business_table.range_key_type == "S")
    )
    error_message = "business_table has the key event_id with type N (hash_key_type ${jsonencode(var.business_table.hash_key_type)}, range_key_type ${jsonencode(var.business_table.range_key_type)}), but the consumer writes event_id as a string: give S."
  }
}

variable "event" {
  default     = {}
  description = <<-EOT
    How an event is found in a message. All paths are JMESPath into the event. Terraform cannot check them: with a mistake in one the function does not start, which sets off the errors alarm.
    - envelope: raw (the JSON body), sns (the Message in an SNS envelope), eventbridge (the whole event) or s3 (each record of a notification). It is not guessed: messages of another shape are dead-lettered.
    - id: the event's identity, 1 to 2048 bytes; null means id, and for s3 bucket/key/version/sequencer. Two events with one id are one event.
    - item: the object that becomes the business row; @ is the whole event.
    - fingerprint: the part whose change makes the same id a conflict; null means the whole event, and for eventbridge source, detail-type and detail. Change it only while both queues are empty: an event already committed, but still in a queue, would become a conflict.
    - write_mode: insert refuses to overwrite a row, upsert overwrites it, newer overwrites only an older version.
    - version: where the version is, a number or a string; only for newer, and needed there.
  EOT
  nullable    = false

  type = object({
    envelope    = optional(string, "raw")
    fingerprint = optional(string)
    id          = optional(string)
    item        = optional(string, "@")
    version     = optional(string)
    write_mode  = optional(string, "insert")
  })

  validation {
    condition     = contains(["eventbridge", "raw", "s3", "sns"], var.event.envelope)
    error_message = "event.envelope is ${jsonencode(var.event.envelope)}, but must be raw, sns, eventbridge or s3."
  }

  validation {
    condition     = contains(["insert", "newer", "upsert"], var.event.write_mode)
    error_message = "event.write_mode is ${jsonencode(var.event.write_mode)}, but must be insert, upsert or newer."
  }

  validation {
    condition     = var.event.write_mode != "newer" || var.event.version != null
    error_message = "event.version is null and event.write_mode is \"newer\": without a version nothing tells which event is newer. Name the path of one, or choose insert or upsert."
  }

  validation {
    condition     = var.event.write_mode == "newer" || var.event.version == null
    error_message = "event.version is ${jsonencode(var.event.version)} and event.write_mode is ${jsonencode(var.event.write_mode)}: a version is used with newer only, and would be ignored. Choose newer, or leave the version out."
  }

  validation {
    condition = alltrue([
      for path in [var.event.fingerprint, var.event.id, var.event.item, var.event.version] :
      path == null ? true : trimspace(path) != ""
    ])
    error_message = "event has a blank path (fingerprint ${jsonencode(var.event.fingerprint)}, id ${jsonencode(var.event.id)}, item ${jsonencode(var.event.item)}, version ${jsonencode(var.event.version)}): a blank is no JMESPath. Leave it out for the default."
  }

  validation {
    condition     = var.event.envelope != "s3" || var.event.item != "@" || var.business_table.hash_key != "id"
    error_message = "event.envelope is \"s3\", event.item is \"@\" and business_table.hash_key is \"id\": a record of S3 has no id, so each event would be rejected. Set event.item to build the row, or business_table.hash_key to what the record has."
  }

  validation {
    condition     = var.event.envelope != "s3" || !var.queue.fifo
    error_message = "event.envelope is \"s3\" and queue.fifo is true: S3 cannot send to a FIFO queue. Leave queue.fifo false, or let EventBridge send what S3 tells it (event.envelope = \"eventbridge\")."
  }
}
