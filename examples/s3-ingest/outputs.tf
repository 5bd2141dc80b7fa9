output "bucket_name" {
  description = "Name of the bucket whose objects become rows."
  value       = aws_s3_bucket.uploads.id
}

output "uploads" {
  description = "All outputs of the consumer: queue_url, topic_arn, ledger_table_name and so on."
  value       = module.uploads
}
