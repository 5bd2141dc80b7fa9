variable "environment" {
  description = "Environment variables of the function, at most 4 KB in all."
  nullable    = false
  type        = map(string)
}

variable "function" {
  description = "The function: package is the path of its zip and handler names the function in it (null = those that come with the module), the rest as in the root module's variable of this name."
  nullable    = false

  type = object({
    architecture            = string
    batching_window_seconds = optional(number)
    enabled                 = optional(bool, true)
    handler                 = optional(string)
    layers                  = optional(list(string), [])
    maximum_concurrency     = optional(number)
    memory_mb               = number
    package                 = optional(string)
    permissions_boundary    = string
    policy_documents        = optional(list(string), [])
    reserved_concurrency    = optional(number)
    runtime                 = string
    snap_start              = optional(bool, false)
    timeout_seconds         = number
    vpc                     = object({ security_group_ids = list(string), subnet_ids = list(string) })
  })
}

variable "intake" {
  default     = null
  description = "What the function reads: queue_arn, whose messages it hides until they are to be tried again, in calls of batch_size, 1 to 10000; and dead_letter_queue_arn, which it may send to. Null = it reads no queue."

  type = object({
    batch_size            = number
    dead_letter_queue_arn = string
    queue_arn             = string
  })
}

variable "kms_key_arn" {
  default     = null
  description = "ARN of the KMS key that the queues, and all else that the function uses, are encrypted with; the function may use it, and its environment and log group are encrypted with it. Null = no key of your own."
  type        = string
}

variable "log_retention_days" {
  description = "Days that the function's log is kept, one of CloudWatch's values; 0 keeps it for ever."
  nullable    = false
  type        = number
}

variable "name" {
  description = "Name of the function and of its role, at most 64 characters. Another name makes another function."
  nullable    = false
  type        = string
}

variable "rights" {
  description = "What the role may do beyond reading its queue, dead-lettering, logging, tracing and joining a VPC: statements of the role's policy, each with a sid, actions (AWS's names of them) and resources (the ARNs that these are on). How many they are must be known at plan, the ARNs need not be."
  nullable    = false

  type = list(object({
    actions   = list(string)
    resources = list(string)
    sid       = string
  }))
}

variable "shipped_handler" {
  description = "The handler that runs unless function.handler names another: module.function of the zip that comes with the module."
  nullable    = false
  type        = string
}

variable "tags" {
  default     = {}
  description = "Tags of the function, its role, log group and event source mapping."
  nullable    = false
  type        = map(string)
}
