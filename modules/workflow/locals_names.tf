locals {
  # All but the fragment's. Written out, because a validation of var.effect cannot refer to what is built from it.
  own_states = [
    "Claim kept", "Claimed?", "Complete", "Conflict", "Dead letter", "Effect", "Extend claim", "Failed", "Guard",
    "Guard failed", "Look up claim", "Not applied", "Outcome not recorded", "Outcome unknown", "Park", "Release", "Skipped",
  ]

  # What Lambda says where the function may have run, and what Step Functions says of a state whose calls may have.
  # https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html
  uncertain_error = "^(States\\..*|Lambda\\.(AWSLambdaException|SdkClientException|ServiceException|Unknown)|(Runtime|Sandbox)\\..*)$"

  # Written out, because a validation of var.function cannot refer to what is built from it.
  reserved_environment = [
    # The settings of the starter and the guard.
    "BACKOFF_MAX_SECONDS", "CONSUMER_NAME", "DEAD_LETTER_QUEUE_URL", "EVENT_ENVELOPE", "EVENT_FINGERPRINT", "EVENT_ID",
    "IDEMPOTENCY_TABLE", "MAX_RECEIVE_COUNT", "QUEUE_URL", "RETENTION_SECONDS", "STATE_MACHINE_ARN",
    "VISIBILITY_TIMEOUT_SECONDS", "WORKFLOW_NAMESPACE", "WORKFLOW_RETENTION_SECONDS",
    # Lambda's own: https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html
    "_HANDLER", "_X_AMZN_TRACE_ID", "AWS_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_DEFAULT_REGION",
    "AWS_EXECUTION_ENV", "AWS_REGION", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "LAMBDA_RUNTIME_DIR", "LAMBDA_TASK_ROOT",
  ]
}
