# The words at the top of the dashboard.
locals {
  legends = {
    operation = <<-EOT
      ## ${var.consumer_name}
      The first two rows are what became of events, those below are AWS's own figures.

      **Normal:** *completed* follows the traffic, and *claimed*, the attempts, is a little above it. *Duplicates* and *ignored* events changed nothing. *Retries* after a refusal, a throttle or a deployment pass by themselves. *Stale*, now and then: an attempt ended without an answer.

      **Trouble:** *rejected*, *conflicts* and *failed* wait in the dead-letter queue, with their reason; their effect was not applied. *Unknown*: it may have been applied, and a person has to look. *Misconfigured*: a right, a table or a secret is missing. An *age* that only grows.
    EOT

    pipeline = <<-EOT
      ## ${var.consumer_name}
      The first two rows are what became of events, those below are AWS's own figures.

      **Normal:** *applied* follows the traffic. *Duplicates*, *resumed*, *superseded* and *ignored* events changed nothing. *Retries* after a throttle or a deployment pass by themselves.

      **Trouble:** *rejected* and *conflicts* wait in the dead-letter queue, with their reason. *Misconfigured*: a right, a table or a topic is missing. *Stale*: committed, and nobody was told. An *age* that only grows.
    EOT

    workflow = <<-EOT
      ## ${var.consumer_name}
      The first rows are what became of events, those below are AWS's own figures.

      **Normal:** *started* follows the traffic, and *succeeded* follows it. *Duplicates* started nothing new; *skipped* executions succeeded and ran no effect. *Ignored* events changed nothing. *Retries* after a throttle or a deployment pass by themselves.

      **Trouble:** *rejected* events, and those of *failed* executions, wait in the dead-letter queue, with their reason; it says whether the effect may have been applied. *Aborted* and *timed out*: nobody recorded what became of the effect. *Misconfigured*: a right, a table or the state machine is missing. An *age* that only grows.
    EOT
  }
}
