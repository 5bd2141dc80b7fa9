locals {
  # Where a metric comes from: its namespace, and the one dimension that tells it from others.
  sources = merge(
    {
      consumer    = ["IdempotentConsumer", "Consumer", var.consumer_name]
      dead_letter = ["AWS/SQS", "QueueName", var.dead_letter_queue_name]
      intake      = ["AWS/SQS", "QueueName", var.queue_name]
      worker      = ["AWS/Lambda", "FunctionName", var.function_name]
    },
    { (local.kind) = ["IdempotentConsumer", "Consumer", var.consumer_name] },
    { for kind in [local.kind] : "business" => ["AWS/DynamoDB", "TableName", var.business_table_name] if kind == "pipeline" },
    { (local.kind == "workflow" ? "claims" : "ledger") = ["AWS/DynamoDB", "TableName", var.ledger_table_name] },
    { for workflow in var.workflow[*] : "executions" => ["AWS/States", "StateMachineArn", workflow.state_machine_arn] },
    { for workflow in var.workflow[*] : "failures" => ["AWS/Events", "RuleName", workflow.failures_rule_name] },
    { for name in flatten(var.workflow[*].guard_function_names) : "guard" => ["AWS/Lambda", "FunctionName", name] },
    { for name in flatten(var.workflow[*].guard_function_names) : "guarded" => ["IdempotentConsumer", "Consumer", var.consumer_name] },
    { for name in var.reconciler_function_names : "pending" => ["IdempotentConsumer", "Consumer", var.consumer_name] },
    { for name in var.reconciler_function_names : "reconciler" => ["AWS/Lambda", "FunctionName", name] },
    { for arn in var.topic_arns : "topic" => ["AWS/SNS", "TopicName", split(":", arn)[5]] },
  )

  # A topic may be of another Region. The lines of a widget are of one.
  regions = { for arn in var.topic_arns : "topic" => split(":", arn)[3] }

  # Without the lines that have no source, and the widgets that have no line left.
  widgets = [for widget in [
    for widget in concat(local.business_widgets, local.aws_widgets) : {
      title = widget.title
      lines = [for line in widget.lines : line if contains(keys(local.sources), line[1])]
    }
  ] : widget if length(widget.lines) > 0]
}

resource "aws_cloudwatch_dashboard" "consumer" {
  count = var.dashboard ? 1 : 0

  dashboard_name = var.consumer_name
  dashboard_body = jsonencode({
    widgets = concat(
      [{ type = "text", x = 0, y = 0, width = 24, height = 5, properties = { markdown = local.legends[local.kind] } }],
      # Three in a row.
      [for n, widget in local.widgets : {
        type   = "metric"
        x      = n % 3 * 8
        y      = 5 + floor(n / 3) * 6
        width  = 8
        height = 6
        properties = {
          metrics = [for line in widget.lines : [
            local.sources[line[1]][0], line[2], local.sources[line[1]][1], local.sources[line[1]][2],
            { label = line[0], stat = line[3], yAxis = line[4] },
          ]]
          period = 300
          region = lookup(local.regions, widget.lines[0][1], var.region)
          title  = widget.title
          view   = "timeSeries"
          yAxis  = { left = { min = 0, showUnits = false }, right = { min = 0, showUnits = false } }
        }
      }]
    )
  })
}
