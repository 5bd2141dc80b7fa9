variable "function" {
  default     = {}
  description = <<-EOT
    The function that processes the messages. The reconciler has its architecture, runtime and vpc.
    - enabled: false pauses it: messages wait in the queue and age.
    - package: path of a zip of your own, as lambda/build.py --source makes it; null is the one that comes with the module. handler: module.function in it, needed with a package; null is the shipped one.
    - table_arns: further tables, of the same Region, that your own plan writes to. With code of your own the function may put, update, delete and check rows of these and of the business table. A KMS key of a table's own needs a policy document.
    - runtime: python3.11 or later. architecture: arm64 or x86_64; the zip works on both.
    - memory_mb: megabytes, 128 to 10240; the share of a processor grows with it.
    - timeout_seconds: seconds, 10 to 900. A step starts only while there is time for it, so below 10 nothing would be done.
    - maximum_concurrency: calls at a time, 2 to 1000; null is without a limit.
    - reserved_concurrency: calls that are kept for the function and that it cannot exceed; at least maximum_concurrency, which must then be set. Below it the poller is throttled, and each throttle counts as a receive.
    - batching_window_seconds: seconds, 0 to 300, to wait for a full batch; null on FIFO.
    - environment: added to the variables of the function, and of the reconciler. layers: up to 5 ARNs of layer versions.
    - vpc: subnet_ids and security_group_ids; the function then reaches DynamoDB, SNS, SQS and X-Ray only through endpoints or a NAT.
    - snap_start: publishes versions and reads the queue through the alias live; needs python3.12 or later.
    - permissions_boundary: ARN of a policy that bounds the roles, the reconciler's and its schedule's too. policy_documents: JSON policies for what your own code needs.
  EOT
  nullable    = false

  type = object({
    architecture            = optional(string, "arm64")
    batching_window_seconds = optional(number)
    enabled                 = optional(bool, true)
    environment             = optional(map(string), {})
    handler                 = optional(string)
    layers                  = optional(list(string), [])
    maximum_concurrency     = optional(number)
    memory_mb               = optional(number, 512)
    package                 = optional(string)
    permissions_boundary    = optional(string)
    policy_documents        = optional(list(string), [])
    reserved_concurrency    = optional(number)
    runtime                 = optional(string, "python3.13")
    snap_start              = optional(bool, false)
    table_arns              = optional(list(string), [])
    timeout_seconds         = optional(number, 30)
    vpc                     = optional(object({ security_group_ids = list(string), subnet_ids = list(string) }))
  })

  validation {
    condition     = contains(["arm64", "x86_64"], var.function.architecture)
    error_message = "function.architecture is ${jsonencode(var.function.architecture)}, but must be arm64 or x86_64."
  }

  validation {
    condition     = var.function.batching_window_seconds == null ? true : contains(range(0, 301), var.function.batching_window_seconds)
    error_message = "function.batching_window_seconds is ${jsonencode(var.function.batching_window_seconds)}, but must be a whole number from 0 to 300."
  }

  validation {
    condition     = length(setintersection(keys(var.function.environment), local.reserved_environment)) == 0
    error_message = "function.environment has ${join(", ", setintersection(keys(var.function.environment), local.reserved_environment))}, set by this module or by Lambda itself: choose other names."
  }

  validation {
    condition     = alltrue([for key in keys(var.function.environment) : can(regex("^[A-Za-z][A-Za-z0-9_]+$", key)) && !startswith(key, "AWS_LAMBDA_")])
    error_message = "function.environment has ${join(", ", [for key in keys(var.function.environment) : jsonencode(key) if !can(regex("^[A-Za-z][A-Za-z0-9_]+$", key)) || startswith(key, "AWS_LAMBDA_")])}, but a name is a letter, then letters, digits and _, and does not begin with AWS_LAMBDA_, which is Lambda's own."
  }

  validation {
    condition     = var.function.handler == null ? true : can(regex("^[A-Za-z0-9_/-]+(\\.[A-Za-z0-9_/-]+)+$", var.function.handler)) && length(var.function.handler) <= 128
    error_message = "function.handler is ${jsonencode(var.function.handler)}, but must be module.function, at most 128 letters, digits, _, - and /."
  }

  # Else the shipped plan would run in place of the user's, without a word.
  validation {
    condition     = var.function.package == null || var.function.handler != null
    error_message = "function.package is ${jsonencode(var.function.package)} and function.handler is null: name the handler in your zip, as module.function."
  }

  validation {
    condition     = var.function.package != null || length(var.function.layers) > 0 || coalesce(var.function.handler, local.shipped_handler) == local.shipped_handler
    error_message = "function.handler is ${jsonencode(var.function.handler)} and function.package is null: the zip that comes with the module has no handler of that name. Give the path of your own zip as function.package, or leave the handler null."
  }

  validation {
    condition     = length(var.function.layers) <= 5 && alltrue([for arn in var.function.layers : can(regex("^arn:[a-z0-9-]+:lambda:[a-z0-9-]+:[0-9]{12}:layer:[A-Za-z0-9_-]+:[0-9]+$", arn))])
    error_message = "function.layers is ${jsonencode(var.function.layers)}, but must be at most 5 ARNs of layer versions: arn:<partition>:lambda:<region>:<account>:layer:<name>:<version>."
  }

  validation {
    condition     = var.function.maximum_concurrency == null ? true : contains(range(2, 1001), var.function.maximum_concurrency)
    error_message = "function.maximum_concurrency is ${jsonencode(var.function.maximum_concurrency)}, but must be a whole number from 2 to 1000 (AWS takes no 1); null is without a limit."
  }

  validation {
    condition     = floor(var.function.memory_mb) == var.function.memory_mb && var.function.memory_mb >= 128 && var.function.memory_mb <= 10240
    error_message = "function.memory_mb is ${var.function.memory_mb}, but must be a whole number from 128 to 10240."
  }

  validation {
    condition     = var.function.package == null ? true : try(fileexists(var.function.package), false)
    error_message = "function.package is ${jsonencode(var.function.package)}, and there is no such file: give the path of the function's zip, or null for the one that comes with the module."
  }

  validation {
    condition     = var.function.permissions_boundary == null ? true : can(regex("^arn:[a-z0-9-]+:iam::([0-9]{12}|aws):policy/.+$", var.function.permissions_boundary))
    error_message = "function.permissions_boundary is ${jsonencode(var.function.permissions_boundary)}, but must be the ARN of an IAM policy."
  }

  validation {
    condition     = alltrue([for document in var.function.policy_documents : can(jsondecode(document).Statement)])
    error_message = "function.policy_documents has no IAM policy at the positions ${join(", ", [for n, document in var.function.policy_documents : n if !can(jsondecode(document).Statement)])}: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives."
  }

  validation {
    condition = (
      var.function.reserved_concurrency == null ? true :
      floor(var.function.reserved_concurrency) == var.function.reserved_concurrency &&
      try(var.function.reserved_concurrency >= var.function.maximum_concurrency, false)
    )
    error_message = "function.reserved_concurrency is ${jsonencode(var.function.reserved_concurrency)} and function.maximum_concurrency is ${jsonencode(var.function.maximum_concurrency)}: it must be a whole number, at least maximum_concurrency (which must be set), or the poller is throttled and messages reach the dead-letter queue without having run."
  }

  validation {
    condition     = can(regex("^python3\\.(1[1-9]|[2-9][0-9])$", var.function.runtime))
    error_message = "function.runtime is ${jsonencode(var.function.runtime)}, but must be python3.11 or later."
  }

  validation {
    condition     = !var.function.snap_start || var.function.runtime != "python3.11"
    error_message = "function.snap_start is true and function.runtime is ${jsonencode(var.function.runtime)}: SnapStart needs python3.12 or later."
  }

  validation {
    condition     = alltrue([for arn in var.function.table_arns : can(regex("^arn:[a-z0-9-]+:dynamodb:[a-z0-9-]+:[0-9]{12}:table/[A-Za-z0-9_.-]{3,255}$", arn))])
    error_message = "function.table_arns is ${jsonencode(var.function.table_arns)}, but must be ARNs of DynamoDB tables: arn:<partition>:dynamodb:<region>:<account>:table/<name>."
  }

  validation {
    condition     = !anytrue([for arn in var.function.table_arns : try(endswith(arn, "-processed-events"), false)])
    error_message = "function.table_arns is ${jsonencode(var.function.table_arns)}, with a consumer's ledger: a plan that could write there could undo what the ledger promises. Leave the ledger out."
  }

  validation {
    condition     = length(var.function.table_arns) == 0 || var.function.package != null || length(var.function.layers) > 0
    error_message = "function.table_arns is ${jsonencode(var.function.table_arns)} and function.package is null: the shipped plan writes to the business table alone. Give the path of your own zip as function.package."
  }

  validation {
    condition     = floor(var.function.timeout_seconds) == var.function.timeout_seconds && var.function.timeout_seconds >= 10 && var.function.timeout_seconds <= 900
    error_message = "function.timeout_seconds is ${var.function.timeout_seconds}, but must be a whole number from 10 to 900: each call to AWS may take 7 seconds, and a step starts only while there is time for it."
  }

  validation {
    condition     = var.function.vpc == null ? true : length(var.function.vpc.subnet_ids) > 0 && length(var.function.vpc.security_group_ids) > 0
    error_message = "function.vpc has ${try(length(var.function.vpc.subnet_ids), 0)} subnet_ids and ${try(length(var.function.vpc.security_group_ids), 0)} security_group_ids, but needs at least one of each; null is no VPC."
  }
}
