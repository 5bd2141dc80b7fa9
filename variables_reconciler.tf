variable "reconciler" {
  default     = {}
  description = <<-EOT
    A second function, on a schedule, that publishes what was committed but never announced because its message is gone.
    - enabled: false leaves out the function, its schedule, roles, log group and alarms, and the ledger's index. Such events then stay unannounced until someone publishes them by the command line, which has to scan the ledger.
    - interval_minutes: minutes from run to run, 1 to 1440.
    - memory_mb: megabytes, 256 to 10240.
    - policy_documents: JSON policies for what it needs beyond, such as the key of an existing topic.
    - threshold_seconds: seconds, up to 1209600 (14 days), from which on a committed event counts as stuck; at least the queue's visibility timeout. Null means twice that, and at least 900. Less finds it sooner, and announces more events twice.
    - timeout_seconds: seconds of a run, 30 to 900, and no more than interval_minutes. What it does not get done is left to the next run.
  EOT
  nullable    = false

  type = object({
    enabled           = optional(bool, true)
    interval_minutes  = optional(number, 5)
    memory_mb         = optional(number, 512)
    policy_documents  = optional(list(string), [])
    threshold_seconds = optional(number)
    timeout_seconds   = optional(number, 60)
  })

  validation {
    condition     = floor(var.reconciler.interval_minutes) == var.reconciler.interval_minutes && var.reconciler.interval_minutes >= 1 && var.reconciler.interval_minutes <= 1440
    error_message = "reconciler.interval_minutes is ${var.reconciler.interval_minutes}, but must be a whole number from 1 to 1440 (a day)."
  }

  validation {
    condition     = floor(var.reconciler.memory_mb) == var.reconciler.memory_mb && var.reconciler.memory_mb >= 256 && var.reconciler.memory_mb <= 10240
    error_message = "reconciler.memory_mb is ${var.reconciler.memory_mb}, but must be a whole number from 256 to 10240: a run holds pages of 50 rows of up to 400 KB."
  }

  validation {
    condition     = alltrue([for document in var.reconciler.policy_documents : can(jsondecode(document).Statement)])
    error_message = "reconciler.policy_documents has no IAM policy at the positions ${join(", ", [for n, document in var.reconciler.policy_documents : n if !can(jsondecode(document).Statement)])}: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives."
  }

  validation {
    condition = (
      var.reconciler.threshold_seconds == null ? true :
      floor(var.reconciler.threshold_seconds) == var.reconciler.threshold_seconds && var.reconciler.threshold_seconds <= 1209600
    )
    error_message = "reconciler.threshold_seconds is ${jsonencode(var.reconciler.threshold_seconds)}, but must be a whole number, at most 1209600 (14 days): by then no queue holds the message any more."
  }

  validation {
    condition = (
      var.reconciler.threshold_seconds == null ? true :
      var.reconciler.threshold_seconds >= local.visibility_timeout_seconds
    )
    error_message = "reconciler.threshold_seconds is ${jsonencode(var.reconciler.threshold_seconds)}, below the queue's visibility timeout (${local.visibility_timeout_seconds}): the event of a message that is in work would be announced twice. Raise it, or leave it null."
  }

  validation {
    condition     = floor(var.reconciler.timeout_seconds) == var.reconciler.timeout_seconds && var.reconciler.timeout_seconds >= 30 && var.reconciler.timeout_seconds <= 900
    error_message = "reconciler.timeout_seconds is ${var.reconciler.timeout_seconds}, but must be a whole number from 30 to 900: the last 9 seconds of a run begin nothing, and reading what is pending takes a part of the rest."
  }

  validation {
    condition     = var.reconciler.interval_minutes < 1 ? true : var.reconciler.timeout_seconds <= var.reconciler.interval_minutes * 60
    error_message = "reconciler.timeout_seconds is ${var.reconciler.timeout_seconds}, above reconciler.interval_minutes (${var.reconciler.interval_minutes}, in seconds ${var.reconciler.interval_minutes * 60}): two runs would overlap and announce the same events twice. Lower the first, or raise the second."
  }
}
