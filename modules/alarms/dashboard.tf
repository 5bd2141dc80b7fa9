locals {
  # Where a metric comes from: its namespace, and the one dimension that tells it from others.
  sources = merge(
    {
      business    = ["AWS/DynamoDB", "TableName", var.business_table_name]
      consumer    = ["IdempotentConsumer", "Consumer", var.consumer_name]
      dead_letter = ["AWS/SQS", "QueueName", var.dead_letter_queue_name]
      intake      = ["AWS/SQS", "QueueName", var.queue_name]
      ledger      = ["AWS/DynamoDB", "TableName", var.ledger_table_name]
      worker      = ["AWS/Lambda", "FunctionName", var.function_name]
    },
    { for name in var.reconciler_function_names : "pending" => ["IdempotentConsumer", "Consumer", var.consumer_name] },
    { for name in var.reconciler_function_names : "reconciler" => ["AWS/Lambda", "FunctionName", name] },
    { for arn in var.topic_arns : "topic" => ["AWS/SNS", "TopicName", split(":", arn)[5]] },
  )

  # A topic may be of another Region. The lines of a widget are of one.
  regions = { for arn in var.topic_arns : "topic" => split(":", arn)[3] }

  # A line: what it is called, where it comes from, its metric and statistic, and the axis.
  # One whose source is not there is left out, and so is a widget without a line.
  business_widgets = [
    { title = "Settled events: all of these are normal, duplicates too", lines = [
      ["applied", "consumer", "Applied", "Sum", "left"],
      ["resumed", "consumer", "Resumed", "Sum", "left"],
      ["duplicates", "consumer", "Duplicates", "Sum", "left"],
      ["superseded", "consumer", "Superseded", "Sum", "left"],
      ["ignored", "consumer", "Ignored", "Sum", "left"],
    ] },
    { title = "Dead-lettered events: each one is trouble", lines = [
      ["rejected", "consumer", "Rejected", "Sum", "left"],
      ["conflicts", "consumer", "Conflicts", "Sum", "left"],
    ] },
    { title = "Events that come back: a bump is normal, a plateau or misconfigured is trouble", lines = [
      ["retries", "consumer", "Retries", "Sum", "left"],
      ["blocked (FIFO)", "consumer", "Blocked", "Sum", "left"],
      ["misconfigured", "consumer", "Misconfigured", "Sum", "left"],
    ] },
    { title = "Event age, sent to done (milliseconds): growing is trouble", lines = [
      ["half are younger", "consumer", "EventAge", "p50", "left"],
      ["95 % are younger", "consumer", "EventAge", "p95", "left"],
      ["oldest", "consumer", "EventAge", "Maximum", "left"],
    ] },
    { title = "Receives of a message: 1 is normal, the queue's maximum is trouble", lines = [
      ["average", "consumer", "ReceiveCount", "Average", "left"],
      ["most", "consumer", "ReceiveCount", "Maximum", "left"],
    ] },
    { title = "Committed, not yet announced: stale is trouble; reconciled and replayed put it right", lines = [
      ["stale", "pending", "StalePending", "Maximum", "left"],
      ["reconciled", "pending", "Reconciled", "Sum", "left"],
      ["replayed", "consumer", "Replayed", "Sum", "left"],
      ["oldest (milliseconds)", "pending", "OldestPendingAge", "Maximum", "right"],
    ] },
  ]

  aws_widgets = [
    { title = "Queue: a wave is normal, a growing age is trouble", lines = [
      ["waiting", "intake", "ApproximateNumberOfMessagesVisible", "Maximum", "left"],
      ["in work", "intake", "ApproximateNumberOfMessagesNotVisible", "Maximum", "left"],
      ["age of the oldest (seconds)", "intake", "ApproximateAgeOfOldestMessage", "Maximum", "right"],
    ] },
    { title = "Dead-letter queue: anything is trouble", lines = [
      ["dead letters", "dead_letter", "ApproximateNumberOfMessagesVisible", "Maximum", "left"],
      ["age of the oldest (seconds)", "dead_letter", "ApproximateAgeOfOldestMessage", "Maximum", "right"],
    ] },
    { title = "Calls of the functions: errors, throttles and broken loops are trouble", lines = [
      ["calls", "worker", "Invocations", "Sum", "left"],
      ["errors", "worker", "Errors", "Sum", "left"],
      ["throttles", "worker", "Throttles", "Sum", "left"],
      ["broken loops", "worker", "RecursiveInvocationsDropped", "Sum", "left"],
      ["reconciler: runs", "reconciler", "Invocations", "Sum", "left"],
      ["reconciler: errors", "reconciler", "Errors", "Sum", "left"],
    ] },
    { title = "Duration (milliseconds): near the timeout is trouble", lines = [
      ["half are shorter", "worker", "Duration", "p50", "left"],
      ["longest", "worker", "Duration", "Maximum", "left"],
      ["reconciler: longest", "reconciler", "Duration", "Maximum", "left"],
      ["calls at a time", "worker", "ConcurrentExecutions", "Maximum", "right"],
    ] },
    { title = "Tables: conflicts under load are normal, lasting throttles are trouble", lines = [
      ["ledger: throttled reads", "ledger", "ReadThrottleEvents", "Sum", "left"],
      ["ledger: throttled writes", "ledger", "WriteThrottleEvents", "Sum", "left"],
      ["ledger: conflicts", "ledger", "TransactionConflict", "Sum", "left"],
      ["business: throttled reads", "business", "ReadThrottleEvents", "Sum", "left"],
      ["business: throttled writes", "business", "WriteThrottleEvents", "Sum", "left"],
      ["business: conflicts", "business", "TransactionConflict", "Sum", "left"],
    ] },
    { title = "Topic: failed deliveries are trouble of a subscriber", lines = [
      ["published", "topic", "NumberOfMessagesPublished", "Sum", "left"],
      ["failed deliveries", "topic", "NumberOfNotificationsFailed", "Sum", "left"],
    ] },
  ]

  # Without the lines that have no source, and the widgets that have no line left.
  widgets = [for widget in [
    for widget in concat(local.business_widgets, local.aws_widgets) : {
      title = widget.title
      lines = [for line in widget.lines : line if contains(keys(local.sources), line[1])]
    }
  ] : widget if length(widget.lines) > 0]

  legend = <<-EOT
    ## ${var.consumer_name}
    The first two rows are what became of events, those below are AWS's own figures.

    **Normal:** *applied* follows the traffic. *Duplicates*, *resumed*, *superseded* and *ignored* events changed nothing. *Retries* after a throttle or a deployment pass by themselves.

    **Trouble:** *rejected* and *conflicts* wait in the dead-letter queue, with their reason. *Misconfigured*: a right, a table or a topic is missing. *Stale*: committed, and nobody was told. An *age* that only grows.
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
