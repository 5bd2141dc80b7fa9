output "dead_letter_queue_arn" {
  description = "ARN of the dead-letter queue."
  value       = aws_sqs_queue.dead_letter.arn
}

output "dead_letter_queue_name" {
  description = "Name of the dead-letter queue."
  value       = aws_sqs_queue.dead_letter.name
}

output "dead_letter_queue_url" {
  description = "URL of the dead-letter queue."
  value       = aws_sqs_queue.dead_letter.url
}

# S3 sends a test message when its notification is configured, and a consumer may fail a message at once:
# who uses the queue's address waits until it accepts producers and has its dead-letter queue.
output "queue_arn" {
  depends_on  = [aws_sqs_queue_policy.intake, aws_sqs_queue_redrive_policy.intake, aws_sqs_queue_redrive_allow_policy.dead_letter]
  description = "ARN of the queue, known once its policies are in place."
  value       = aws_sqs_queue.intake.arn
}

output "queue_name" {
  description = "Name of the queue."
  value       = aws_sqs_queue.intake.name
}

output "queue_url" {
  depends_on  = [aws_sqs_queue_policy.intake, aws_sqs_queue_redrive_policy.intake, aws_sqs_queue_redrive_allow_policy.dead_letter]
  description = "URL of the queue, known once its policies are in place."
  value       = aws_sqs_queue.intake.url
}
