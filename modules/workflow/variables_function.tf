variable "function" {
  default     = {}
  description = <<-EOT
    The starter: the function that starts an execution for each message. The guard's has its architecture, environment, runtime, vpc and permissions_boundary.
    - enabled: false pauses it: messages wait in the queue and age.
    - runtime: python3.11 or later. architecture: arm64 or x86_64; the zip works on both.
    - memory_mb: megabytes, 128 to 10240; the share of a processor grows with it.
    - timeout_seconds: seconds, 10 to 900. A step starts only while there is time for it, so below 10 nothing would be done.
    - maximum_concurrency: calls at a time, 2 to 1000; null is without a limit. It bounds how fast executions start, not how many of them run.
    - reserved_concurrency: calls that are kept for the function and that it cannot exceed; at least maximum_concurrency, which must then be set. Below it the poller is throttled, and each throttle counts as a receive.
    - batching_window_seconds: seconds, 0 to 300, to wait for a full batch.
    - environment: added to the variables of the function, and of the guard.
    - vpc: subnet_ids and security_group_ids; the function then reaches Step Functions, SQS and X-Ray, and the guard DynamoDB and X-Ray, only through endpoints or a NAT.
    - permissions_boundary: ARN of a policy that bounds the roles, the state machine's too.
  EOT
  nullable    = false

  type = object({
    architecture            = optional(string, "arm64")
    batching_window_seconds = optional(number)
    enabled                 = optional(bool, true)
    environment             = optional(map(string), {})
    maximum_concurrency     = optional(number)
    memory_mb               = optional(number, 512)
    permissions_boundary    = optional(string)
    reserved_concurrency    = optional(number)
    runtime                 = optional(string, "python3.13")
    timeout_seconds         = optional(number, 30)
    vpc                     = optional(object({ security_group_ids = list(string), subnet_ids = list(string) }))
  })

  validation {
    condition     = contains(["arm64", "x86_64"], var.function.architecture)
    error_message = "function.architecture is ${jsonencode(var.function.architecture)}, but must be arm64 or x86_64."
  }

  validation {
    condition     = var.function.batching_window_seconds == null ? true : contains(range(0, 301), var.function.batching_window_seconds)
    error_message = "function.batching_window_seconds is ${jsonencode(var.function.batching_window_seconds)}, but must be a whole number from 0 to 300."
  }

  validation {
    condition     = length(setintersection(keys(var.function.environment), local.reserved_environment)) == 0
    error_message = "function.environment has ${join(", ", setintersection(keys(var.function.environment), local.reserved_environment))}, set by this module or by Lambda itself: choose other names."
  }

  validation {
    condition     = alltrue([for key in keys(var.function.environment) : can(regex("^[A-Za-z][A-Za-z0-9_]+$", key)) && !startswith(key, "AWS_LAMBDA_")])
    error_message = "function.environment has ${join(", ", [for key in keys(var.function.environment) : jsonencode(key) if !can(regex("^[A-Za-z][A-Za-z0-9_]+$", key)) || startswith(key, "AWS_LAMBDA_")])}, but a name is a letter, then letters, digits and _, and does not begin with AWS_LAMBDA_, which is Lambda's own."
  }

  validation {
    condition     = var.function.maximum_concurrency == null ? true : contains(range(2, 1001), var.function.maximum_concurrency)
    error_message = "function.maximum_concurrency is ${jsonencode(var.function.maximum_concurrency)}, but must be a whole number from 2 to 1000 (AWS takes no 1); null is without a limit."
  }

  validation {
    condition     = floor(var.function.memory_mb) == var.function.memory_mb && var.function.memory_mb >= 128 && var.function.memory_mb <= 10240
    error_message = "function.memory_mb is ${var.function.memory_mb}, but must be a whole number from 128 to 10240."
  }

  validation {
    condition     = var.function.permissions_boundary == null ? true : can(regex("^arn:[a-z0-9-]+:iam::([0-9]{12}|aws):policy/.+$", var.function.permissions_boundary))
    error_message = "function.permissions_boundary is ${jsonencode(var.function.permissions_boundary)}, but must be the ARN of an IAM policy."
  }

  validation {
    condition = (
      var.function.reserved_concurrency == null ? true :
      floor(var.function.reserved_concurrency) == var.function.reserved_concurrency &&
      try(var.function.reserved_concurrency >= var.function.maximum_concurrency, false)
    )
    error_message = "function.reserved_concurrency is ${jsonencode(var.function.reserved_concurrency)} and function.maximum_concurrency is ${jsonencode(var.function.maximum_concurrency)}: it must be a whole number, at least maximum_concurrency (which must be set), or the poller is throttled and messages reach the dead-letter queue without having run."
  }

  validation {
    condition     = can(regex("^python3\\.(1[1-9]|[2-9][0-9])$", var.function.runtime))
    error_message = "function.runtime is ${jsonencode(var.function.runtime)}, but must be python3.11 or later."
  }

  validation {
    condition     = floor(var.function.timeout_seconds) == var.function.timeout_seconds && var.function.timeout_seconds >= 10 && var.function.timeout_seconds <= 900
    error_message = "function.timeout_seconds is ${var.function.timeout_seconds}, but must be a whole number from 10 to 900: each call to AWS may take 7 seconds, and a step starts only while there is time for it."
  }

  validation {
    condition     = var.function.vpc == null ? true : length(var.function.vpc.subnet_ids) > 0 && length(var.function.vpc.security_group_ids) > 0
    error_message = "function.vpc has ${try(length(var.function.vpc.subnet_ids), 0)} subnet_ids and ${try(length(var.function.vpc.security_group_ids), 0)} security_group_ids, but needs at least one of each; null is no VPC."
  }
}
