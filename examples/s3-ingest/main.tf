# Each object that is put into the bucket becomes a row.
module "uploads" {
  source = "../.."

  name                = "uploads"
  business_table_name = "uploaded_objects"

  deletion_protection = var.deletion_protection

  business_table = {
    hash_key = "key"
  }

  # Notifications of one object can overtake each other; the sequencer tells which is newer. The key is stored as the
  # object has it, not as S3 writes it in the notification.
  event = {
    envelope   = "s3"
    item       = "{key: s3.object.key, bucket: s3.bucket.name, size: s3.object.size, etag: s3.object.eTag, put_at: eventTime}"
    version    = "s3.object.sequencer"
    write_mode = "newer"
  }

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  queue = {
    producers                  = [{ service = "s3.amazonaws.com", source_arn = aws_s3_bucket.uploads.arn }]
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

resource "aws_s3_bucket" "uploads" {
  # checkov:skip=CKV_AWS_18:An example: each object that is put is a row, which is all that is to be seen here.
  # checkov:skip=CKV_AWS_21:Only the newest put of an object counts here.
  # checkov:skip=CKV_AWS_144:An example in one Region.
  # checkov:skip=CKV_AWS_145:S3's own key encrypts it. S3 sends the names alone to the queue.
  # checkov:skip=CKV2_AWS_6:S3 blocks public access to each new bucket by itself.
  # checkov:skip=CKV2_AWS_61:How long objects are kept is for those who put them.

  bucket_prefix = "uploads-"
  force_destroy = !var.deletion_protection
}

# S3 sends a test message at once, which the consumer ignores: queue_arn is known only when the queue takes it.
resource "aws_s3_bucket_notification" "uploads" {
  bucket = aws_s3_bucket.uploads.id

  queue {
    events    = ["s3:ObjectCreated:*"]
    queue_arn = module.uploads.queue_arn
  }
}
