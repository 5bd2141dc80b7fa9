variable "http" {
  default     = null
  description = <<-EOT
    The effect that comes with the module: one HTTP call for each event. Null with an effect of your own, in function.package. Paths are JMESPath into {event, key}, where key is the idempotency key; result and reconcile.applied read {status, headers, body, event, key}.
    - url: the address; a fixed one is in quotes of its own: "'https://api.example.com/v1/charges'". A list is an address, the path segments behind it and, at the end, an object that is the query; they are percent-encoded.
    - hosts: the 1 to 50 hosts, as host or host:port, that may be called; another one is never called, whatever the event says.
    - method: POST, PUT, PATCH or DELETE. body: a text is sent as it is, anything else as JSON; "" sends none.
    - headers: up to 50 names of at most 100 characters, each with a path; what selects nothing is left out. idempotency_header: the header that carries the key; "" sends none.
    - result: what is stored of the answer. A large one is not: select a reference.
    - secret: secret_arn (Secrets Manager) or parameter_arn (SSM) names it, json_key its part if it is JSON; it is sent in header, behind prefix, and read again after max_age_seconds, 1 to 86400. A KMS key of its own needs a policy document.
    - statuses: what a status says, from 100 to 599, where it is not the default: completed (2xx), final (301, 307, 308 and 4xx: certainly not applied, never again), retryable (401, 403, 425, 429: certainly not applied), uncertain (the rest).
    - reconcile: a GET that asks whether the effect was applied; url and headers as above. applied: true, false or, with anything else, not known. not_applied_statuses: 400 to 499, those that say no.
    - allow_http: addresses without TLS are taken too. For tests alone: the secret can be read on the way.
  EOT

  type = object({
    allow_http         = optional(bool, false)
    body               = optional(string, "event")
    headers            = optional(map(string), {})
    hosts              = list(string)
    idempotency_header = optional(string, "Idempotency-Key")
    method             = optional(string, "POST")
    reconcile = optional(object({
      applied              = string
      headers              = optional(map(string), {})
      not_applied_statuses = optional(list(number), [404])
      result               = optional(string, "{status: status}")
      url                  = string
    }))
    result = optional(string, "{status: status}")
    secret = optional(object({
      header          = optional(string, "Authorization")
      json_key        = optional(string)
      max_age_seconds = optional(number, 300)
      parameter_arn   = optional(string)
      prefix          = optional(string, "Bearer ")
      secret_arn      = optional(string)
    }))
    statuses = optional(object({
      completed = optional(list(number), [])
      final     = optional(list(number), [])
      retryable = optional(list(number), [])
      uncertain = optional(list(number), [])
    }), {})
    url = string
  })

  validation {
    condition     = (var.http == null) != (var.function.package == null)
    error_message = "http is ${var.http == null ? "null" : "set"} and function.package is ${jsonencode(var.function.package)}: give one of the two, http for the effect that comes with the module or function.package for one of your own."
  }

  validation {
    condition = var.http == null ? true : alltrue([
      for path in concat([var.http.url, var.http.result], values(var.http.headers), try([var.http.reconcile.url, var.http.reconcile.applied, var.http.reconcile.result], []), try(values(var.http.reconcile.headers), [])) :
      try(trimspace(path) != "", false)
    ]) && (try(var.http.body == "", true) || try(trimspace(var.http.body) != "", true))
    error_message = "http has a blank or null path (url ${try(jsonencode(var.http.url), "")}, body ${try(jsonencode(var.http.body), "")}, headers ${try(jsonencode(var.http.headers), "")}, result ${try(jsonencode(var.http.result), "")}, reconcile ${try(jsonencode(var.http.reconcile), "")}): a blank is no JMESPath. Only the body may be \"\", which sends none."
  }

  # Only an address that is written out can be checked here. The function checks each one before it calls it.
  validation {
    condition     = alltrue([for url in compact(try([var.http.url, var.http.reconcile.url], [var.http.url], [])) : !can(regex("^\\s*\\[?\\s*\"?(?i:https?)://", url))])
    error_message = "http.url is ${try(var.http.url, "")}${try(" and http.reconcile.url ${var.http.reconcile.url}", "")}, but a fixed address is in quotes of its own: \"'https://…'\"."
  }

  validation {
    condition = alltrue([
      for url in compact(try([var.http.url, var.http.reconcile.url], [var.http.url], [])) :
      !can(regex("^\\s*(\\[\\s*)?'", url)) || can(regex("^\\s*(\\[\\s*)?'(?i:http${var.http.allow_http ? "s?" : "s"})://", url))
    ])
    error_message = "http.url is ${try(var.http.url, "")}${try(" and http.reconcile.url ${var.http.reconcile.url}", "")}, but an address begins with https://: without TLS anyone on the way could read and change what is sent (http.allow_http is for tests)."
  }

  validation {
    condition = alltrue([
      for match in [for url in compact(try([var.http.url, var.http.reconcile.url], [var.http.url], [])) : try(regex(local.http_authority, lower(url)), null)] :
      try(contains([for host in var.http.hosts : replace(lower(host), local.http_default_port[match[0]], "")], replace(match[1], local.http_default_port[match[0]], "")), true)
    ])
    error_message = "http.url is ${try(var.http.url, "")}${try(" and http.reconcile.url ${var.http.reconcile.url}", "")}, but http.hosts is ${try(jsonencode(var.http.hosts), "")}: no other host is called. Add the address's own."
  }

  validation {
    condition     = alltrue([for url in compact(try([var.http.url, var.http.reconcile.url], [var.http.url], [])) : !can(regex(local.http_authority, url)) || can(regex(local.http_address, url)) && !can(regex(local.http_odd_address, url))])
    error_message = "http.url is ${try(var.http.url, "")}${try(" and http.reconcile.url ${var.http.reconcile.url}", "")}, but an address has no fragment, no blank or control character, no empty path segment and none of dots, and no query before the other parts of a list; other characters are percent-encoded."
  }

  validation {
    condition     = var.http == null ? true : length(var.http.hosts) >= 1 && length(var.http.hosts) <= 50 && alltrue([for host in var.http.hosts : try(length(regex(local.http_host, host)[0]) <= 253, false) && try(tonumber(regex(":([0-9]+)$", host)[0]) <= 65535, true)])
    error_message = "http.hosts is ${try(jsonencode(var.http.hosts), "")}, but must be 1 to 50 hosts, each as host or host:port, a host of at most 253 characters: no scheme, no path, no wildcard, and an international name in punycode."
  }

  validation {
    condition     = var.http == null ? true : contains(["DELETE", "PATCH", "POST", "PUT"], var.http.method)
    error_message = "http.method is ${try(jsonencode(var.http.method), "")}, but must be POST, PUT, PATCH or DELETE."
  }

  validation {
    condition     = var.http == null ? true : alltrue([for status in concat(var.http.statuses.completed, var.http.statuses.final, var.http.statuses.retryable, var.http.statuses.uncertain) : try(contains(range(contains(var.http.statuses.uncertain, status) ? 100 : 200, 600), status), false)])
    error_message = "http.statuses is ${try(jsonencode(var.http.statuses), "")}, but a status is a whole number from 200 to 599; only an uncertain one may be below 200."
  }

  validation {
    condition     = var.http == null ? true : length(distinct(concat(var.http.statuses.completed, var.http.statuses.final, var.http.statuses.retryable, var.http.statuses.uncertain))) == length(concat(var.http.statuses.completed, var.http.statuses.final, var.http.statuses.retryable, var.http.statuses.uncertain))
    error_message = "http.statuses is ${try(jsonencode(var.http.statuses), "")}, with a status twice: it can say one thing only."
  }

  validation {
    condition     = try(var.http.reconcile, null) == null ? true : alltrue([for status in var.http.reconcile.not_applied_statuses : try(contains(setsubtract(range(400, 500), [401, 403, 408, 425, 429]), status), false)])
    error_message = "http.reconcile.not_applied_statuses is ${try(jsonencode(var.http.reconcile.not_applied_statuses), "")}, but must be from 400 to 499 without 401, 403, 408, 425 and 429: another status does not say that nothing was applied."
  }

  validation {
    condition = var.http == null ? true : length(var.http.headers) <= 50 && length(try(var.http.reconcile.headers, {})) <= 50 && alltrue([
      for name in concat(keys(var.http.headers), keys(try(var.http.reconcile.headers, {})), compact([var.http.idempotency_header]), try(var.http.secret[*].header, [])) :
      can(regex("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$", name)) && !can(regex("^(accept-encoding|connection|content-length|expect|host|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade)$", lower(name)))
    ])
    error_message = "http names the headers ${try(join(", ", [for name in concat(keys(var.http.headers), keys(try(var.http.reconcile.headers, {})), compact([var.http.idempotency_header]), try(var.http.secret[*].header, [])) : jsonencode(name)]), "")}, but a name (at most 50 in http.headers, and in http.reconcile.headers) is of 1 to 100 letters, digits and !#$%&'*+.^_`|~-, and not Accept-Encoding, Connection, Content-Length, Expect, Host, Keep-Alive, Proxy-…, TE, Trailer, Transfer-Encoding or Upgrade, which the call itself sets."
  }

  validation {
    condition = var.http == null ? true : alltrue([
      for names in [keys(var.http.headers), keys(try(var.http.reconcile.headers, {}))] :
      length(distinct([for name in concat(names, compact([var.http.idempotency_header]), try(var.http.secret[*].header, [])) : lower(name)])) == length(concat(names, compact([var.http.idempotency_header]), try(var.http.secret[*].header, [])))
    ])
    error_message = "http.headers is ${try(jsonencode(var.http.headers), "")}${try(", http.reconcile.headers ${jsonencode(var.http.reconcile.headers)}", "")}, http.idempotency_header ${try(jsonencode(var.http.idempotency_header), "")}${try(" and http.secret.header ${jsonencode(var.http.secret.header)}", "")}: one header twice, upper and lower case being the same. Leave it out of the headers."
  }

  validation {
    condition     = try(var.http.secret, null) == null ? true : (var.http.secret.secret_arn == null) != (var.http.secret.parameter_arn == null)
    error_message = "http.secret.secret_arn is ${try(jsonencode(var.http.secret.secret_arn), "")} and http.secret.parameter_arn ${try(jsonencode(var.http.secret.parameter_arn), "")}: give one of the two."
  }

  # The rights are on this ARN, and one without AWS's own ending would match no secret.
  validation {
    condition     = try(var.http.secret.secret_arn, null) == null ? true : can(regex("^arn:[a-z-]+:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@!-]+-[A-Za-z0-9]{6}$", var.http.secret.secret_arn))
    error_message = "http.secret.secret_arn is ${try(jsonencode(var.http.secret.secret_arn), "")}, but must be the whole ARN of a secret: arn:<partition>:secretsmanager:<region>:<account>:secret:<name>-<6 characters of AWS's>."
  }

  validation {
    condition     = try(var.http.secret.parameter_arn, null) == null ? true : can(regex("^arn:[a-z-]+:ssm:[a-z0-9-]+:[0-9]{12}:parameter/[A-Za-z0-9/_.-]+$", var.http.secret.parameter_arn))
    error_message = "http.secret.parameter_arn is ${try(jsonencode(var.http.secret.parameter_arn), "")}, but must be the ARN of an SSM parameter: arn:<partition>:ssm:<region>:<account>:parameter/<name>."
  }

  validation {
    condition     = try(var.http.secret, null) == null ? true : floor(var.http.secret.max_age_seconds) == var.http.secret.max_age_seconds && var.http.secret.max_age_seconds >= 1 && var.http.secret.max_age_seconds <= 86400 && can(regex("^[ -~]{0,100}$", var.http.secret.prefix)) && try(trimspace(var.http.secret.json_key) != "", true)
    error_message = "http.secret has max_age_seconds ${try(var.http.secret.max_age_seconds, "")}, prefix ${try(jsonencode(var.http.secret.prefix), "")} and json_key ${try(jsonencode(var.http.secret.json_key), "")}, but must have a whole number from 1 to 86400, at most 100 printable ASCII characters, and a key that is not blank, or null."
  }
}
