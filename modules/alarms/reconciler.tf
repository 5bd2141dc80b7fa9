locals {
  # A period holds a run, or the alarm would clear between two of them.
  run_period = max(300, var.reconciler_interval_minutes * 60)

  reconciler_alarms = [for function_name in var.reconciler_function_names : {
    reconciler-errors = {
      description = "Runs of the reconciler failed: what is committed may stay unannounced."
      dimensions  = { FunctionName = function_name }
      metric      = "Errors"
      namespace   = "AWS/Lambda"
      period      = local.run_period
      statistic   = "Sum"
      threshold   = 0
    }
    # A function that does not run reports nothing. A day is the longest period that an alarm takes.
    reconciler-silent = {
      comparison  = "LessThanThreshold"
      description = "The reconciler does not run: what is committed may stay unannounced. Also on from the alarm's creation until the first run."
      dimensions  = { FunctionName = function_name }
      metric      = "Invocations"
      missing     = "breaching"
      namespace   = "AWS/Lambda"
      period      = min(86400, max(900, 3 * var.reconciler_interval_minutes * 60))
      statistic   = "Sum"
      threshold   = 1
    }
    stale-pending = {
      description = "Events are committed, but a run of the reconciler could not announce them."
      dimensions  = { Consumer = var.consumer_name }
      metric      = "StalePending"
      namespace   = "IdempotentConsumer"
      period      = local.run_period
      statistic   = "Maximum"
      threshold   = var.stale_pending_threshold
    }
  }]
}
