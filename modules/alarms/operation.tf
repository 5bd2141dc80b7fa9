locals {
  operation_alarms = [for operation in var.operation[*] : {
    failed = {
      description = "Effects were refused for good, or all attempts at them failed: they were certainly not applied. Their messages are in the dead-letter queue."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "Failed"
      namespace   = "IdempotentConsumer"
      period      = 300
      statistic   = "Sum"
      threshold   = operation.failed_threshold
    }
    outcome-unknown = {
      description = "Nobody knows whether these effects were applied: they are parked, and their messages are in the dead-letter queue, until a person decides."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "OutcomeUnknown"
      namespace   = "IdempotentConsumer"
      period      = 300
      statistic   = "Sum"
      threshold   = 0
    }
  }]
}
