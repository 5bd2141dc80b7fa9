variable "workflow" {
  default     = null
  description = <<-EOT
    Null for a pipeline or an operation. For a workflow, which has alarms of its executions and no conflicts alarm, and lines of its own on the dashboard; function_name is its starter's.
    - executions_failed_threshold, executions_throttled_threshold: failed executions, or throttled state transitions, in five minutes, 0 or more; one more sets off the alarm of that name.
    - failures_rule_name: name of the rule that puts executions without a dead letter of their own into the dead-letter queue.
    - guard_function_names: the guard's function, as a list of none or one: its length is known while the name may not be.
    - state_machine_arn: ARN of the state machine.
  EOT

  type = object({
    executions_failed_threshold    = number
    executions_throttled_threshold = number
    failures_rule_name             = string
    guard_function_names           = list(string)
    state_machine_arn              = string
  })
}
