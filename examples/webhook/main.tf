# Orders are announced at a partner's webhook by the effect that comes with the module, without code.
module "webhook" {
  source = "../../modules/operation"

  name = "webhook"

  deletion_protection = var.deletion_protection

  function = {
    environment     = var.function_environment
    timeout_seconds = var.function_timeout_seconds
  }

  http = {
    allow_http = var.allow_http
    body       = "{order: event.id, amount: event.amount}"
    headers    = { X-Event = "event.id" }
    hosts      = [regex("^https?://([^/]+)", var.receiver_url)[0]]
    result     = "{status: status, receipt: body.id}"
    secret     = { secret_arn = aws_secretsmanager_secret.token.arn }
    url        = "'${var.receiver_url}'"
  }

  # The receiver tells a repeated idempotency key, and remembers it for two days.
  operation = {
    effect_timeout_seconds = var.effect_timeout_seconds
    max_age_seconds        = 86400
    uncertain              = "provider_key"
  }

  queue = {
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}

# What the receiver knows the sender by. Its value is put in by hand: a state file is no place for it.
resource "aws_secretsmanager_secret" "token" {
  # checkov:skip=CKV_AWS_149:An example: Secrets Manager's own key encrypts it.
  # checkov:skip=CKV2_AWS_57:The receiver gives out the token. Nothing here could make another.

  name                    = "webhook-token"
  recovery_window_in_days = var.deletion_protection ? 30 : 0
}
