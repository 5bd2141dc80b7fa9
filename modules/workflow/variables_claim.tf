variable "guard" {
  default     = "function"
  description = "Who claims a key before the effect: function (a Lambda function, which counts and logs what it decides) or direct (Step Functions writes to DynamoDB itself: one call less for a new message, one more for a duplicate). Same table, same meaning; a change keeps all claims."
  nullable    = false
  type        = string

  validation {
    condition     = contains(["direct", "function"], var.guard)
    error_message = "guard is ${jsonencode(var.guard)}, but must be function or direct."
  }
}

variable "guard_function" {
  default     = {}
  description = <<-EOT
    The guard's function, with guard = "function". What is not said here it has of var.function: architecture, environment, runtime, vpc, permissions_boundary.
    - memory_mb: megabytes, 128 to 10240; the share of a processor grows with it.
    - timeout_seconds: seconds, 10 to 55. The state machine gives a call up after 60 seconds, and asks again.
  EOT
  nullable    = false

  type = object({
    memory_mb       = optional(number, 512)
    timeout_seconds = optional(number, 15)
  })

  validation {
    condition     = floor(var.guard_function.memory_mb) == var.guard_function.memory_mb && var.guard_function.memory_mb >= 128 && var.guard_function.memory_mb <= 10240
    error_message = "guard_function.memory_mb is ${var.guard_function.memory_mb}, but must be a whole number from 128 to 10240."
  }

  validation {
    condition     = floor(var.guard_function.timeout_seconds) == var.guard_function.timeout_seconds && var.guard_function.timeout_seconds >= 10 && var.guard_function.timeout_seconds <= 55
    error_message = "guard_function.timeout_seconds is ${var.guard_function.timeout_seconds}, but must be a whole number from 10 to 55: a call to AWS may take 7 seconds, and the state machine gives the guard up after 60."
  }
}

variable "namespace" {
  default     = "ingestion"
  description = "The second part of each key in the table, 1 to 1024 characters of ASCII. Another namespace forgets all claims made before: messages still in a queue then repeat their effects."
  nullable    = false
  type        = string

  # It stands in JSONata, between quotes of that.
  validation {
    condition     = can(regex("^[ -~]*[!-~][ -~]*$", var.namespace)) && !can(regex("['\"\\\\{}]", var.namespace)) && length(var.namespace) <= 1024
    error_message = "namespace is ${jsonencode(var.namespace)}, but must be 1 to 1024 printable characters of ASCII, not all of them blanks, without quotes, backslashes and braces."
  }
}

variable "retention_seconds" {
  default     = null
  description = "Seconds, at most 316224000 (ten years), that a key is remembered after it was claimed, and again after its effect ended. Null, which is also the least, means queue.retention_days + queue.dead_letter_retention_days. Above effect.timeout_seconds, and longer than a fragment runs: a claim that is forgotten while its effect runs does not hold off a duplicate, and one that comes later repeats the effect."
  type        = number

  validation {
    condition     = var.retention_seconds == null ? true : floor(var.retention_seconds) == var.retention_seconds && var.retention_seconds <= 316224000
    error_message = "retention_seconds is ${jsonencode(var.retention_seconds)}, but must be a whole number of seconds, at most 316224000 (ten years)."
  }

  validation {
    condition     = var.retention_seconds == null ? true : var.retention_seconds >= ceil((var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400)
    error_message = "retention_seconds is ${jsonencode(var.retention_seconds)}, below queue.retention_days (${var.queue.retention_days}) + queue.dead_letter_retention_days (${var.queue.dead_letter_retention_days}), in seconds ${ceil((var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400)}: a message could come back after its key was forgotten, and its effect would be repeated. Raise retention_seconds, or lower one of the two."
  }

  # A fragment has no timeout.
  validation {
    condition = (
      var.effect.function == null || try(var.retention_seconds < (var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400, false) ? true :
      coalesce(var.retention_seconds, ceil((var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400)) > var.effect.timeout_seconds
    )
    error_message = "retention_seconds is ${coalesce(var.retention_seconds, ceil((var.queue.retention_days + var.queue.dead_letter_retention_days) * 86400))}, not above effect.timeout_seconds (${var.effect.timeout_seconds}): the key could be forgotten while its effect still runs. Raise retention_seconds, or lower effect.timeout_seconds."
  }
}

variable "return_results" {
  default     = false
  description = "Whether the execution of a duplicate also says what the effect gave, if that was recorded: what has over 60000 characters of JSON is not."
  nullable    = false
  type        = bool
}
