variable "effect" {
  description = <<-EOT
    What is done for a message: function or fragment.
    - function: arn of a Lambda function, version or alias. It is given {key, messageId, fingerprint, event, body, attributes}, and what it returns is the result.
    - fragment: states of your own in place of the one that calls a function, as the JSON of an object with StartAt, States and perhaps QueryLanguage, JSONPath or JSONata. They are one branch of a Parallel state, begin with the same input, and what the last one gives is the result. With JSONata the states within a Map or Parallel each say so themselves.
    - not_applied_errors: further errors that say for certain that nothing was done, as Lambda.TooManyRequestsException and Lambda.ResourceNotFoundException do of a function: an exception's class, or what a Fail state of the fragment names. They release the claim, so that the message can be replayed; of a function they are tried again before that. After any other error the claim is kept, and a person decides.
    - max_attempts: calls of the function, 1 to 100, while it ends with one of these errors; waits between them grow from 1 second to 5 minutes, so 20 calls take half an hour or so. Not used with a fragment, which has Retry of its own.
    - timeout_seconds: seconds, 1 to 99999999, for a call of the function; then it may have acted or not, and the claim is kept. Not used with a fragment: a Parallel state has no timeout, so give each of its Task states one.
    - policy_documents: JSON policies for what the fragment's states call; the state machine's role gets them.
  EOT
  nullable    = false

  type = object({
    fragment           = optional(string)
    function           = optional(object({ arn = string }))
    max_attempts       = optional(number, 20)
    not_applied_errors = optional(list(string), [])
    policy_documents   = optional(list(string), [])
    timeout_seconds    = optional(number, 900)
  })

  validation {
    condition     = (var.effect.function == null) != (var.effect.fragment == null)
    error_message = "effect.function is ${var.effect.function == null ? "null" : "set"} and effect.fragment is ${var.effect.fragment == null ? "null" : "set"}: give one of the two, function for a Lambda function or fragment for states of your own."
  }

  validation {
    condition     = var.effect.function == null ? true : can(regex("^arn:[a-z0-9-]+:lambda:[a-z0-9-]+:[0-9]{12}:function:[A-Za-z0-9_-]{1,64}(:(\\$LATEST|[A-Za-z0-9_-]{1,128}))?$", var.effect.function.arn))
    error_message = "effect.function.arn is ${try(jsonencode(var.effect.function.arn), "")}, but must be the ARN of a Lambda function, version or alias: arn:<partition>:lambda:<region>:<account>:function:<name>[:<version or alias>]."
  }

  validation {
    condition     = var.effect.fragment == null ? true : can(keys(jsondecode(var.effect.fragment).States)) && try(length(setsubtract(keys(jsondecode(var.effect.fragment)), ["Comment", "QueryLanguage", "StartAt", "States"])) == 0, false)
    error_message = "effect.fragment is ${try("JSON with ${join(", ", keys(jsondecode(var.effect.fragment)))}", "${jsonencode(try(substr(var.effect.fragment, 0, 100), ""))} …")}, but must be the JSON of an object with StartAt, States (an object) and at most QueryLanguage and Comment beside them."
  }

  # The rest looks at what has passed the rule before it: of one mistake one thing is said.
  validation {
    condition     = can(keys(jsondecode(var.effect.fragment).States)) ? try(contains(keys(jsondecode(var.effect.fragment).States), jsondecode(var.effect.fragment).StartAt), false) : true
    error_message = "effect.fragment has ${try("StartAt ${jsonencode(jsondecode(var.effect.fragment).StartAt)}", "no StartAt")}, but must begin at one of its states, ${try(jsonencode(keys(jsondecode(var.effect.fragment).States)), "")}."
  }

  validation {
    condition = alltrue([
      for state in try(values(jsondecode(var.effect.fragment).States), []) :
      try(contains(["Choice", "Fail", "Map", "Parallel", "Pass", "Succeed", "Task", "Wait"], state.Type), false)
    ])
    error_message = "effect.fragment has ${join(" and ", [for name, state in try(merge(jsondecode(var.effect.fragment).States), {}) : "${name} of ${try("Type ${jsonencode(state.Type)}", "no Type")}" if !try(contains(["Choice", "Fail", "Map", "Parallel", "Pass", "Succeed", "Task", "Wait"], state.Type), false)])}, but each state must be an object with a Type: Choice, Fail, Map, Parallel, Pass, Succeed, Task or Wait."
  }

  validation {
    condition = alltrue([
      for state in try(values(jsondecode(var.effect.fragment).States), []) :
      contains(["Choice", "Fail", "Succeed"], try(state.Type, "Choice")) || can(state.Next) != try(state.End == true, false)
    ])
    error_message = "effect.fragment has ${join(", ", [for name, state in try(merge(jsondecode(var.effect.fragment).States), {}) : "${name} with ${can(state.Next) ? "both Next and End" : "neither Next nor End"}" if !(contains(["Choice", "Fail", "Succeed"], try(state.Type, "Choice")) || can(state.Next) != try(state.End == true, false))])}, but a state goes on to one (Next), or ends (End = true)."
  }

  # As deep as a Map or Parallel of the fragment; AWS refuses the same deeper down.
  validation {
    condition = alltrue([
      for names in [flatten([for states in [try(merge(jsondecode(var.effect.fragment).States), {})] : [keys(states), [for state in values(states) : [for part in concat(try([for branch in state.Branches : branch], []), try([state.ItemProcessor], []), try([state.Iterator], [])) : try(keys(part.States), [])]]]])] :
      length(names) == length(distinct(names)) && length(setintersection(names, local.own_states)) == 0 && alltrue([for name in names : length(name) >= 1 && length(name) <= 80])
    ])
    error_message = "effect.fragment has the states ${jsonencode(flatten([for states in [try(merge(jsondecode(var.effect.fragment).States), {})] : [keys(states), [for state in values(states) : [for part in concat(try([for branch in state.Branches : branch], []), try([state.ItemProcessor], []), try([state.Iterator], [])) : try(keys(part.States), [])]]]]))}, but a name has 1 to 80 characters, stands once in the whole state machine, and is none of the module's own, ${jsonencode(local.own_states)}."
  }

  validation {
    condition = alltrue([
      for language in concat(try([jsondecode(var.effect.fragment).QueryLanguage], []), [for state in try(values(jsondecode(var.effect.fragment).States), []) : state.QueryLanguage if can(state.QueryLanguage)]) :
      try(contains(["JSONata", "JSONPath"], language), false)
    ])
    error_message = "effect.fragment has the QueryLanguage ${join(", ", concat(try([jsonencode(jsondecode(var.effect.fragment).QueryLanguage)], []), [for name, state in try(merge(jsondecode(var.effect.fragment).States), {}) : "${jsonencode(state.QueryLanguage)} in ${name}" if can(state.QueryLanguage)]))}, but it is JSONPath or JSONata."
  }

  # A state without one speaks the state machine's, which is JSONPath. The module can say it for the outer states only.
  validation {
    condition = try(jsondecode(var.effect.fragment).QueryLanguage, "") != "JSONata" ? true : alltrue(flatten([
      for state in try(values(jsondecode(var.effect.fragment).States), []) : [
        for part in concat(try([for branch in state.Branches : branch], []), try([state.ItemProcessor], []), try([state.Iterator], [])) : [for inner in try(values(part.States), []) : can(inner.QueryLanguage)]
      ]
    ]))
    error_message = "effect.fragment has the QueryLanguage JSONata and, in ${join(", ", [for name, state in try(merge(jsondecode(var.effect.fragment).States), {}) : name if length(concat(try([for branch in state.Branches : branch], []), try([state.ItemProcessor], []), try([state.Iterator], []))) > 0])}, states without one: these would be taken for JSONPath. Give each of them a QueryLanguage."
  }

  validation {
    condition = alltrue([
      for state in try(values(jsondecode(var.effect.fragment).States), []) :
      length(setsubtract(concat(try([state.Next], []), try([state.Default], []), try(state.Choices[*].Next, []), try(state.Catch[*].Next, [])), keys(jsondecode(var.effect.fragment).States))) == 0
    ])
    error_message = "effect.fragment goes on to ${join(", ", distinct(flatten([for state in try(values(jsondecode(var.effect.fragment).States), []) : [for next in concat(try([state.Next], []), try([state.Default], []), try(state.Choices[*].Next, []), try(state.Catch[*].Next, [])) : jsonencode(next) if !try(contains(keys(jsondecode(var.effect.fragment).States), next), false)]])))}, but must stay within its states, ${try(jsonencode(keys(jsondecode(var.effect.fragment).States)), "")}."
  }

  validation {
    condition = try(!contains(keys(jsondecode(var.effect.fragment).States), jsondecode(var.effect.fragment).StartAt) || length(setsubtract(keys(jsondecode(var.effect.fragment).States), concat([jsondecode(var.effect.fragment).StartAt], flatten([
      for state in values(jsondecode(var.effect.fragment).States) : concat(try([state.Next], []), try([state.Default], []), try(state.Choices[*].Next, []), try(state.Catch[*].Next, []))
    ])))) == 0, true)
    error_message = "effect.fragment has the states ${jsonencode(try(setsubtract(keys(jsondecode(var.effect.fragment).States), concat([jsondecode(var.effect.fragment).StartAt], flatten([for state in values(jsondecode(var.effect.fragment).States) : concat(try([state.Next], []), try([state.Default], []), try(state.Choices[*].Next, []), try(state.Catch[*].Next, []))]))), []))}, but it does not start there, and nothing leads to them: AWS refuses such a state machine."
  }

  validation {
    condition = try(length(keys(jsondecode(var.effect.fragment).States)) > 0, false) ? anytrue([
      for state in values(jsondecode(var.effect.fragment).States) : try(state.End == true, false) || try(contains(["Fail", "Succeed"], state.Type), true)
    ]) : true
    error_message = "effect.fragment has no state with End or of Type Succeed or Fail among ${try(jsonencode(keys(jsondecode(var.effect.fragment).States)), "")}: it could never end."
  }

  validation {
    condition     = floor(var.effect.max_attempts) == var.effect.max_attempts && var.effect.max_attempts >= 1 && var.effect.max_attempts <= 100
    error_message = "effect.max_attempts is ${var.effect.max_attempts}, but must be a whole number from 1 to 100."
  }

  validation {
    condition     = var.effect.not_applied_errors == null ? true : alltrue([for error in var.effect.not_applied_errors : try(trimspace(error) != "" && length(error) <= 256, false)])
    error_message = "effect.not_applied_errors is ${jsonencode(var.effect.not_applied_errors)}, but an error's name has 1 to 256 characters, not all of them blanks."
  }

  validation {
    condition     = alltrue([for error in var.effect.not_applied_errors : !can(regex(local.uncertain_error, error))])
    error_message = "effect.not_applied_errors is ${jsonencode(var.effect.not_applied_errors)}, but States.…, Lambda.AWSLambdaException, Lambda.SdkClientException, Lambda.ServiceException, Lambda.Unknown, Runtime.… and Sandbox.… do not say that nothing was done: the effect could run twice."
  }

  validation {
    condition     = alltrue([for document in var.effect.policy_documents : can(jsondecode(document).Statement)])
    error_message = "effect.policy_documents has no IAM policy at the positions ${join(", ", [for n, document in var.effect.policy_documents : n if !can(jsondecode(document).Statement)])}: each must be JSON with a Statement, as data.aws_iam_policy_document.<name>.json gives."
  }

  validation {
    condition     = var.effect.function == null || length(var.effect.policy_documents) == 0
    error_message = "effect.policy_documents has the length ${length(var.effect.policy_documents)}, but only effect.fragment needs them: what the function calls is its own role's. Leave them out."
  }

  validation {
    condition     = floor(var.effect.timeout_seconds) == var.effect.timeout_seconds && var.effect.timeout_seconds >= 1 && var.effect.timeout_seconds <= 99999999
    error_message = "effect.timeout_seconds is ${var.effect.timeout_seconds}, but must be a whole number from 1 to 99999999."
  }
}
