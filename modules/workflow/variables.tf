variable "name" { type = string }
variable "batch_size" {
  default = 10
  type    = number
}
variable "namespace" {
  default = "ingestion"
  type    = string
}
variable "guard" {
  default = "function"
  type    = string
}
variable "return_results" {
  default = false
  type    = bool
}
variable "retention_seconds" {
  default = null
  type    = number
}
variable "deletion_protection" {
  default = true
  type    = bool
}
variable "log_retention_days" {
  default = 30
  type    = number
}
variable "tags" {
  default = {}
  type    = map(string)
}
variable "encryption" {
  default = {}
  type    = object({ kms_key_arn = optional(string) })
}
variable "effect" {
  type = object({
    fragment           = optional(string)
    function           = optional(object({ arn = string }))
    max_attempts       = optional(number, 6)
    not_applied_errors = optional(list(string))
    policy_documents   = optional(list(string), [])
    timeout_seconds    = optional(number, 900)
  })
}
variable "event" {
  default = {}
  type = object({
    envelope    = optional(string, "raw")
    fingerprint = optional(string)
    id          = optional(string)
  })
}
variable "function" {
  default = {}
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
}
variable "guard_function" {
  default = {}
  type = object({
    memory_mb       = optional(number, 512)
    timeout_seconds = optional(number, 15)
  })
}
variable "queue" {
  default = {}
  type = object({
    backoff_max_seconds        = optional(number)
    dead_letter_retention_days = optional(number, 14)
    max_receive_count          = optional(number, 5)
    producers = optional(list(object({
      service        = string
      source_account = optional(string)
      source_arn     = string
    })), [])
    retention_days             = optional(number, 4)
    visibility_timeout_seconds = optional(number)
  })
}
