# Each document is handed to the function `ingest`, at most once: a workflow claims it before.
module "ingestion" {
  source = "../../modules/workflow"

  name = "ingestion"

  deletion_protection = var.deletion_protection
  guard               = var.guard
  return_results      = true

  effect = {
    function        = { arn = aws_lambda_function.ingest.arn }
    timeout_seconds = 120
  }

  # An object that is put again is another document: S3's sequencer is part of its key.
  event = var.document_source == "s3" ? { envelope = "s3" } : { id = "id" }

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    producers                  = [for bucket in aws_s3_bucket.documents : { service = "s3.amazonaws.com", source_arn = bucket.arn }]
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

resource "aws_s3_bucket" "documents" {
  # checkov:skip=CKV_AWS_18:An example: each object that is put has its execution, where it is to be seen.
  # checkov:skip=CKV_AWS_21:A document is ingested once as it was put; no older one is asked for.
  # checkov:skip=CKV_AWS_144:An example in one Region.
  # checkov:skip=CKV_AWS_145:S3's own key encrypts it. S3 sends the names alone to the queue.
  # checkov:skip=CKV2_AWS_6:S3 blocks public access to each new bucket by itself.
  # checkov:skip=CKV2_AWS_61:How long objects are kept is for those who put them.

  count = var.document_source == "s3" ? 1 : 0

  bucket_prefix = "documents-"
  force_destroy = !var.deletion_protection
}

# S3 sends a test message at once, which the starter ignores: queue_arn is known only when the queue takes it.
resource "aws_s3_bucket_notification" "documents" {
  count = length(aws_s3_bucket.documents)

  bucket = aws_s3_bucket.documents[0].id

  queue {
    events    = ["s3:ObjectCreated:*"]
    queue_arn = module.ingestion.queue_arn
  }
}
