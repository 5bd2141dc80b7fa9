variable "business_table" {
  default     = null
  description = "Whether the business table is created (create) or exists, and its key: hash_key and range_key are attribute names (range_key null = none), hash_key_type and range_key_type are S or N. An existing table with another key is refused. Null = no business table."

  type = object({
    create         = bool
    hash_key       = string
    hash_key_type  = string
    range_key      = string
    range_key_type = string
  })
}

variable "business_table_name" {
  default     = null
  description = "Name of the business table, 3 to 255 characters; needed with business_table, and without it of no use. Another name makes another table."
  type        = string
}

variable "deletion_protection" {
  default     = true
  description = "Whether DynamoDB refuses to delete the tables made here. A lost ledger means that all messages still in a queue are processed again."
  nullable    = false
  type        = bool
}

variable "kms_key_arn" {
  default     = null
  description = "ARN of the KMS key for the tables made here; null uses DynamoDB's own key."
  type        = string
}

variable "ledger_table_name" {
  description = "Name of the ledger table, 3 to 255 characters. Another name makes another, empty ledger."
  nullable    = false
  type        = string
}

variable "pending_index" {
  default     = true
  description = "Whether the ledger has the index pending, by which events that are not finished are found: committed and not announced, or an operation's that is neither completed nor failed. Each event then costs two small writes more. Without it finding them takes a scan."
  nullable    = false
  type        = bool
}

variable "tags" {
  default     = {}
  description = "Tags of the tables made here."
  nullable    = false
  type        = map(string)
}
