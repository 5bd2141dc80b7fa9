# An order is charged by code of its own, src/payments.py, at a provider that is known by its URL alone.
module "payments" {
  source = "../../modules/operation"

  name = "payments"

  deletion_protection = var.deletion_protection

  function = {
    environment     = merge({ PROVIDER_URL = var.provider_url }, var.function_environment)
    handler         = "payments.handler"
    package         = coalesce(var.package, "${path.module}/payments.zip")
    timeout_seconds = var.function_timeout_seconds
  }

  operation = {
    effect_timeout_seconds = var.effect_timeout_seconds
    settle_seconds         = var.settle_seconds
    uncertain              = var.uncertain
  }

  queue = {
    visibility_timeout_seconds = var.visibility_timeout_seconds
  }
}
