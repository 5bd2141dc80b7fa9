locals {
  # A line: what it is called, where it comes from, its metric and statistic, and the axis.
  # One whose source is not there is left out, and so is a widget without a line.
  business_widgets = [
    { title = "Settled events: all of these are normal, duplicates too", lines = [
      ["applied", "pipeline", "Applied", "Sum", "left"],
      ["resumed", "pipeline", "Resumed", "Sum", "left"],
      ["started", "workflow", "Started", "Sum", "left"],
      ["claimed", "operation", "Claimed", "Sum", "left"],
      ["claimed", "guarded", "Claimed", "Sum", "left"],
      ["completed", "operation", "Completed", "Sum", "left"],
      ["duplicates", "consumer", "Duplicates", "Sum", "left"],
      ["superseded", "pipeline", "Superseded", "Sum", "left"],
      ["skipped", "guarded", "Skipped", "Sum", "left"],
      ["ignored", "consumer", "Ignored", "Sum", "left"],
    ] },
    { title = "Dead-lettered events: each one is trouble", lines = [
      ["rejected", "consumer", "Rejected", "Sum", "left"],
      ["conflicts", "consumer", "Conflicts", "Sum", "left"],
      ["failed", "operation", "Failed", "Sum", "left"],
    ] },
    { title = "Uncertain outcomes: stale is settled by the policy, unknown is trouble and waits for a person", lines = [
      ["stale", "operation", "InProgressStale", "Sum", "left"],
      ["unknown", "operation", "OutcomeUnknown", "Sum", "left"],
      ["replayed", "operation", "Replayed", "Sum", "left"],
    ] },
    { title = "Events that come back: a bump is normal, a plateau or misconfigured is trouble", lines = [
      ["retries", "consumer", "Retries", "Sum", "left"],
      ["blocked (FIFO)", "pipeline", "Blocked", "Sum", "left"],
      ["blocked (FIFO)", "operation", "Blocked", "Sum", "left"],
      ["misconfigured", "consumer", "Misconfigured", "Sum", "left"],
      ["replayed", "workflow", "Replayed", "Sum", "left"],
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
      ["replayed", "pipeline", "Replayed", "Sum", "left"],
      ["oldest (milliseconds)", "pending", "OldestPendingAge", "Maximum", "right"],
    ] },
  ]

  aws_widgets = [
    { title = "Executions: succeeded ones are normal, skipped ones among them; all other ends are trouble", lines = [
      ["started", "executions", "ExecutionsStarted", "Sum", "left"],
      ["succeeded", "executions", "ExecutionsSucceeded", "Sum", "left"],
      ["failed", "executions", "ExecutionsFailed", "Sum", "left"],
      ["aborted", "executions", "ExecutionsAborted", "Sum", "left"],
      ["timed out", "executions", "ExecutionsTimedOut", "Sum", "left"],
      ["without a letter", "failures", "FailedInvocations", "Sum", "left"],
    ] },
    { title = "Time of an execution (milliseconds): growing, or throttled, is trouble", lines = [
      ["half are shorter", "executions", "ExecutionTime", "p50", "left"],
      ["longest", "executions", "ExecutionTime", "Maximum", "left"],
      ["throttled", "executions", "ExecutionThrottled", "Sum", "right"],
    ] },
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
      ["guard: calls", "guard", "Invocations", "Sum", "left"],
      ["guard: errors", "guard", "Errors", "Sum", "left"],
      ["guard: throttles", "guard", "Throttles", "Sum", "left"],
      ["reconciler: runs", "reconciler", "Invocations", "Sum", "left"],
      ["reconciler: errors", "reconciler", "Errors", "Sum", "left"],
    ] },
    { title = "Duration (milliseconds): near the timeout is trouble", lines = [
      ["half are shorter", "worker", "Duration", "p50", "left"],
      ["longest", "worker", "Duration", "Maximum", "left"],
      ["guard: longest", "guard", "Duration", "Maximum", "left"],
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
      ["claims: throttled reads", "claims", "ReadThrottleEvents", "Sum", "left"],
      ["claims: throttled writes", "claims", "WriteThrottleEvents", "Sum", "left"],
      ["claims: refused, as of duplicates", "claims", "ConditionalCheckFailedRequests", "Sum", "left"],
    ] },
    { title = "Topic: failed deliveries are trouble of a subscriber", lines = [
      ["published", "topic", "NumberOfMessagesPublished", "Sum", "left"],
      ["failed deliveries", "topic", "NumberOfNotificationsFailed", "Sum", "left"],
    ] },
  ]
}
