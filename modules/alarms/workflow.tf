locals {
  # Of the metrics under AWS/States, those of one state machine. The letter of an execution that has failed says why.
  # https://docs.aws.amazon.com/step-functions/latest/dg/procedure-cw-metrics.html
  execution_alarms = { for name, alarm in {
    executions-aborted = {
      description = "Executions were stopped by hand: nobody recorded what became of their effects. EventBridge puts them into the dead-letter queue."
      metric      = "ExecutionsAborted"
      threshold   = 0
    }
    executions-failed = {
      description = "Executions failed: an effect or the guard failed, or a key came with other content. Their messages are in the dead-letter queue, with the reason."
      metric      = "ExecutionsFailed"
      threshold   = try(var.workflow.executions_failed_threshold, 0)
    }
    executions-throttled = {
      description = "Step Functions held up executions: the account's state transitions are used up. They go on later."
      metric      = "ExecutionThrottled"
      threshold   = try(var.workflow.executions_throttled_threshold, 0)
    }
    executions-timed-out = {
      description = "Executions ran for a year, and Step Functions ended them: nobody recorded what became of their effects. EventBridge puts them into the dead-letter queue."
      metric      = "ExecutionsTimedOut"
      threshold   = 0
    }
  } : name => merge(alarm, { namespace = "AWS/States", period = 300, statistic = "Sum" }) }

  workflow_alarms = concat(
    [for workflow in var.workflow[*] : merge(
      { for name, alarm in local.execution_alarms : name => merge(alarm, { dimensions = { StateMachineArn = workflow.state_machine_arn } }) },
      {
        # https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-monitoring.html
        failures-undelivered = {
          description = "EventBridge could not put an execution that ended without a dead letter of its own into the dead-letter queue: its message is in no queue."
          dimensions  = { RuleName = workflow.failures_rule_name }
          metric      = "FailedInvocations"
          namespace   = "AWS/Events"
          period      = 300
          statistic   = "Sum"
          threshold   = 0
        }
      },
    )],
    [for function_name in flatten(var.workflow[*].guard_function_names) : {
      guard-errors = {
        description = "Calls of the guard failed as a whole. Step Functions tries them again for half an hour or so; then the execution fails."
        dimensions  = { FunctionName = function_name }
        metric      = "Errors"
        namespace   = "AWS/Lambda"
        period      = 300
        statistic   = "Sum"
        threshold   = var.errors_threshold
      }
    }],
  )
}
