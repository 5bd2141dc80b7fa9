variable "operation" {
  default     = {}
  description = <<-EOT
    What is done about an attempt that fails, or of which nobody knows whether it was applied.
    - uncertain: the answer to the second. park (a person decides), provider_key (the provider tells a repeated idempotency key: the same again) or reconcile (the provider is asked whether it was applied).
    - effect_timeout_seconds: seconds, 1 or more, that an effect may take; then it is stopped, and is uncertain. It only starts while there is so much time.
    - lease_ms: milliseconds that a claim lasts, up to 43200000 (12 hours); nobody else works on the event in that time. Null, which is also the least, means (function.timeout_seconds + 120) x 1000: past that the worker is dead, by any clock.
    - max_attempts, max_age_seconds: attempts, 1 to 100, and seconds since the first one, 60 to 1209600 (14 days); after either no further one is made. So max_age_seconds is above retry_seconds unless there is one attempt only; above the lease with provider_key; above lease and settling together with reconcile. Providers commonly remember a key for 24 hours.
    - retry_seconds: seconds, 1 to 39600 (11 hours), until the second attempt at least; doubled for each further one, up to queue.backoff_max_seconds.
    - settle_seconds: seconds, up to 1209600, after a lease's end in which the provider may still apply what it was asked; reconcile asks no earlier, and the other policies do not use it. With it, queue.retention_days lasts for twice the lease and settling. Null means effect_timeout_seconds + 120. A provider that may apply later than that needs another policy.
  EOT
  nullable    = false

  type = object({
    effect_timeout_seconds = optional(number, 10)
    lease_ms               = optional(number)
    max_age_seconds        = optional(number, 82800)
    max_attempts           = optional(number, 20)
    retry_seconds          = optional(number, 30)
    settle_seconds         = optional(number)
    uncertain              = optional(string, "park")
  })

  validation {
    condition     = floor(var.operation.effect_timeout_seconds) == var.operation.effect_timeout_seconds && var.operation.effect_timeout_seconds >= 1
    error_message = "operation.effect_timeout_seconds is ${var.operation.effect_timeout_seconds}, but must be a whole number, 1 or more."
  }

  validation {
    condition     = var.operation.lease_ms == null ? true : floor(var.operation.lease_ms) == var.operation.lease_ms && var.operation.lease_ms <= 43200000
    error_message = "operation.lease_ms is ${jsonencode(var.operation.lease_ms)}, but must be a whole number, at most 43200000 (12 hours): SQS hides a message no longer."
  }

  validation {
    condition     = var.operation.lease_ms == null ? true : var.operation.lease_ms >= (var.function.timeout_seconds + 120) * 1000
    error_message = "operation.lease_ms is ${jsonencode(var.operation.lease_ms)}, below (function.timeout_seconds + 120) x 1000 (${(var.function.timeout_seconds + 120) * 1000}): with clocks that differ by a minute each, a second worker could begin while the first is still at work. Raise it, or leave it null."
  }

  validation {
    condition     = floor(var.operation.max_age_seconds) == var.operation.max_age_seconds && var.operation.max_age_seconds >= 60 && var.operation.max_age_seconds <= 1209600
    error_message = "operation.max_age_seconds is ${var.operation.max_age_seconds}, but must be a whole number from 60 to 1209600 (14 days)."
  }

  validation {
    condition     = floor(var.operation.max_attempts) == var.operation.max_attempts && var.operation.max_attempts >= 1 && var.operation.max_attempts <= 100
    error_message = "operation.max_attempts is ${var.operation.max_attempts}, but must be a whole number from 1 to 100."
  }

  validation {
    condition     = floor(var.operation.retry_seconds) == var.operation.retry_seconds && var.operation.retry_seconds >= 1 && var.operation.retry_seconds <= 39600
    error_message = "operation.retry_seconds is ${var.operation.retry_seconds}, but must be a whole number from 1 to 39600 (11 hours)."
  }

  validation {
    condition     = var.operation.settle_seconds == null ? true : floor(var.operation.settle_seconds) == var.operation.settle_seconds && var.operation.settle_seconds >= 0 && var.operation.settle_seconds <= 1209600
    error_message = "operation.settle_seconds is ${jsonencode(var.operation.settle_seconds)}, but must be a whole number from 0 to 1209600 (14 days)."
  }

  validation {
    condition     = contains(["park", "provider_key", "reconcile"], var.operation.uncertain)
    error_message = "operation.uncertain is ${jsonencode(var.operation.uncertain)}, but must be park, provider_key or reconcile."
  }

  validation {
    condition     = var.operation.max_attempts <= 1 || var.operation.retry_seconds < var.operation.max_age_seconds
    error_message = "operation.retry_seconds is ${var.operation.retry_seconds}, not below operation.max_age_seconds (${var.operation.max_age_seconds}), and operation.max_attempts is ${var.operation.max_attempts}: a second attempt would always be too late. Lower operation.retry_seconds, raise operation.max_age_seconds, or set operation.max_attempts to 1."
  }

  # Written out, because a validation of var.operation cannot refer to what is built from it.
  validation {
    condition     = var.operation.uncertain != "provider_key" || coalesce(var.operation.lease_ms, (var.function.timeout_seconds + 120) * 1000) < var.operation.max_age_seconds * 1000
    error_message = "operation.max_age_seconds is ${var.operation.max_age_seconds}, but with operation.uncertain \"provider_key\" must be above operation.lease_ms (in seconds ${coalesce(var.operation.lease_ms, (var.function.timeout_seconds + 120) * 1000) / 1000}): an uncertain attempt is repeated when its lease is over, and would always be too late. Raise operation.max_age_seconds, or choose park."
  }

  validation {
    condition     = var.operation.uncertain != "reconcile" || coalesce(var.operation.lease_ms, (var.function.timeout_seconds + 120) * 1000) / 1000 + coalesce(var.operation.settle_seconds, var.operation.effect_timeout_seconds + 120) < var.operation.max_age_seconds
    error_message = "operation.max_age_seconds is ${var.operation.max_age_seconds}, but with operation.uncertain \"reconcile\" must be above operation.lease_ms (in seconds ${coalesce(var.operation.lease_ms, (var.function.timeout_seconds + 120) * 1000) / 1000}) + operation.settle_seconds (${coalesce(var.operation.settle_seconds, var.operation.effect_timeout_seconds + 120)}): the provider is asked no earlier, and another attempt would always be too late. Raise operation.max_age_seconds, or lower one of the two."
  }

  validation {
    condition     = var.operation.uncertain != "reconcile" || var.http == null || try(var.http.reconcile, null) != null
    error_message = "operation.uncertain is \"reconcile\" and http.reconcile is null: say how the provider is asked, or choose park or provider_key."
  }

  # A path may name the key anywhere: what names it nowhere cannot send it.
  validation {
    condition = (
      var.operation.uncertain != "provider_key" || var.http == null ? true :
      var.http.idempotency_header != "" ||
      anytrue([for path in concat([var.http.url, var.http.body], values(var.http.headers)) : can(regex("(^|[^.\\w\"])key\\b(?:[^:\\w]|$)", path))])
    )
    error_message = "operation.uncertain is \"provider_key\", http.idempotency_header is \"\", and no path of http names key: without the key a repeated call would be applied again. Send the key, or choose park or reconcile."
  }
}
