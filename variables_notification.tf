variable "notification" {
  default     = {}
  description = <<-EOT
    What is published for each committed event.
    - create_topic: whether a topic is created, a FIFO one with queue.fifo. With false and topic_arn null nothing is published.
    - topic_arn: ARN of an existing topic to publish to. Its key, if it has one of its own, needs a policy document of yours in function.policy_documents and in reconciler.policy_documents.
    - message: JMESPath into the event; a string is sent as it is, anything else as JSON. @ is the whole event.
    - attributes: message attributes, name to JMESPath, at most 9: event_id is always sent, and with more than 10 a raw-delivery subscriber silently gets nothing.
    - max_bytes: bytes, 1 to 350000 (the ledger row holds the message), and at most 262144 with a topic created here. An event with a larger notification is dead-lettered before anything is written.
  EOT
  nullable    = false

  type = object({
    attributes   = optional(map(string), {})
    create_topic = optional(bool, true)
    max_bytes    = optional(number, 262144)
    message      = optional(string, "@")
    topic_arn    = optional(string)
  })

  validation {
    condition     = !var.notification.create_topic || var.notification.topic_arn == null
    error_message = "notification.topic_arn is ${jsonencode(var.notification.topic_arn)} and notification.create_topic is true: with create_topic a topic is made and topic_arn would be ignored. Set create_topic = false to use yours."
  }

  validation {
    condition     = var.notification.topic_arn == null ? true : can(regex("^arn:[a-z0-9-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\\.fifo)?$", var.notification.topic_arn))
    error_message = "notification.topic_arn is ${jsonencode(var.notification.topic_arn)}, but must be the ARN of a topic: arn:<partition>:sns:<region>:<account>:<name>."
  }

  validation {
    condition     = trimspace(var.notification.message) != ""
    error_message = "notification.message is ${jsonencode(var.notification.message)}, a blank: SNS refuses empty messages. Give a JMESPath; @ is the whole event."
  }

  validation {
    condition     = length(var.notification.attributes) <= 9
    error_message = "notification.attributes has ${length(var.notification.attributes)} names, but may have at most 9: event_id is the tenth, and with more than 10 a raw-delivery subscriber silently gets nothing."
  }

  validation {
    condition     = !contains([for name in keys(var.notification.attributes) : lower(name)], "event_id")
    error_message = "notification.attributes has ${join(", ", [for name in keys(var.notification.attributes) : jsonencode(name) if lower(name) == "event_id"])}, but event_id is set by the consumer: choose another name."
  }

  validation {
    condition = alltrue([
      for name in keys(var.notification.attributes) :
      can(regex("^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$", name)) && length(name) <= 256 &&
      !startswith(lower(name), "aws.") && !startswith(lower(name), "amazon.")
    ])
    error_message = "notification.attributes has ${join(", ", [for name in keys(var.notification.attributes) : jsonencode(name) if !can(regex("^[A-Za-z0-9_-]+(\\.[A-Za-z0-9_-]+)*$", name)) || length(name) > 256 || startswith(lower(name), "aws.") || startswith(lower(name), "amazon.")])}, but a name is 1 to 256 letters, digits, _, - and single dots inside, and does not begin with AWS. or Amazon."
  }

  validation {
    condition     = alltrue([for path in values(var.notification.attributes) : try(trimspace(path) != "", false)])
    error_message = "notification.attributes is ${jsonencode(var.notification.attributes)}, with a blank or null path: a blank is no JMESPath."
  }

  validation {
    condition     = floor(var.notification.max_bytes) == var.notification.max_bytes && var.notification.max_bytes >= 1 && var.notification.max_bytes <= 350000
    error_message = "notification.max_bytes is ${var.notification.max_bytes}, but must be a whole number from 1 to 350000: the ledger row, at most 400 KB, holds the message."
  }

  validation {
    condition     = !var.notification.create_topic || var.notification.max_bytes <= 262144
    error_message = "notification.max_bytes is ${var.notification.max_bytes} and notification.create_topic is true: a topic made here takes 262144 bytes. Publish to a topic of yours whose MaximumMessageSize is raised."
  }
}
