output "bucket_name" {
  description = "Name of the bucket whose objects are ingested; null where documents come by SQS."
  value       = one(aws_s3_bucket.documents[*].id)
}

output "ingestion" {
  description = "All outputs of the workflow: queue_url, dead_letter_queue_url, state_machine_arn, idempotency_table_name and so on."
  value       = module.ingestion
}

output "words_table_name" {
  description = "Name of the table that counts the words of all documents."
  value       = aws_dynamodb_table.words.name
}
