locals {
  # Where a metric comes from: its namespace, and the one dimension that tells it from others.
  sources = merge(
    {
      consumer    = ["IdempotentConsumer", "Consumer", var.consumer_name]
      dead_letter = ["AWS/SQS", "QueueName", var.dead_letter_queue_name]
      intake      = ["AWS/SQS", "QueueName", var.queue_name]
      ledger      = ["AWS/DynamoDB", "TableName", var.ledger_table_name]
      worker      = ["AWS/Lambda", "FunctionName", var.function_name]
    },
    var.operation == null ? {
      business = ["AWS/DynamoDB", "TableName", var.business_table_name]
      pipeline = ["IdempotentConsumer", "Consumer", var.consumer_name]
    } : { operation = ["IdempotentConsumer", "Consumer", var.consumer_name] },
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

  legend = var.operation == null ? local.pipeline_legend : local.operation_legend

  pipeline_legend = <<-EOT
    ## ${var.consumer_name}
    The first two rows are what became of events, those below are AWS's own figures.

    **Normal:** *applied* follows the traffic. *Duplicates*, *resumed*, *superseded* and *ignored* events changed nothing. *Retries* after a throttle or a deployment pass by themselves.

    **Trouble:** *rejected* and *conflicts* wait in the dead-letter queue, with their reason. *Misconfigured*: a right, a table or a topic is missing. *Stale*: committed, and nobody was told. An *age* that only grows.
  EOT

  operation_legend = <<-EOT
    ## ${var.consumer_name}
    The first two rows are what became of events, those below are AWS's own figures.

    **Normal:** *completed* follows the traffic, and *claimed*, the attempts, is a little above it. *Duplicates* and *ignored* events changed nothing. *Retries* after a refusal, a throttle or a deployment pass by themselves. *Stale*, now and then: an attempt ended without an answer.

    **Trouble:** *rejected*, *conflicts* and *failed* wait in the dead-letter queue, with their reason; their effect was not applied. *Unknown*: it may have been applied, and a person has to look. *Misconfigured*: a right, a table or a secret is missing. An *age* that only grows.
  EOT
}

resource "aws_cloudwatch_dashboard" "consumer" {
  count = var.dashboard ? 1 : 0

  dashboard_name = var.consumer_name
  dashboard_body = jsonencode({
    widgets = concat(
      [{ type = "text", x = 0, y = 0, width = 24, height = 5, properties = { markdown = local.legend } }],
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
