# The same pipeline twice: with the zip that comes with the module, and with the peer's.
variable "peer_handler" {
  description = "The function in the peer's zip, module.function."
  type        = string
}

variable "peer_package" {
  description = "Path of the peer's zip."
  type        = string
}

module "ours" {
  source = "../.."

  name                = "ours"
  business_table_name = "ours_order_records"
  ttl_window_days     = 30
  batch_size          = 10

  deletion_protection = false
  function            = { enabled = false }
}

module "peer" {
  source = "../.."

  name                = "peer"
  business_table_name = "peer_order_records"
  ttl_window_days     = 30
  batch_size          = 10

  deletion_protection = false

  function = {
    enabled          = false
    handler          = var.peer_handler
    package          = var.peer_package
    policy_documents = [data.aws_iam_policy_document.peer.json]
  }
}

# Beyond what the module's own function needs: the rights that the idempotency utility asks for.
data "aws_iam_policy_document" "peer" {
  statement {
    actions   = ["dynamodb:DeleteItem", "dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"]
    resources = ["arn:${data.aws_partition.current.partition}:dynamodb:*:*:table/peer-processed-events"]
  }
}

data "aws_partition" "current" {}

output "ours" {
  description = "All outputs of the pipeline with the module's own function."
  value       = module.ours
}

output "peer" {
  description = "All outputs of the pipeline with the peer's function."
  value       = module.peer
}
