"""Charges orders at a payment provider: each of them once, by its idempotency key."""

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import urllib3
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from idempotent_consumer import Applied, Event, Final, NotApplied, Retryable, Uncertain, Unknown, operation

# As main.tf names it, and operations' own setting: the answer has to be there before the effect is stopped.
PROVIDER = os.environ["PROVIDER_URL"].rstrip("/")
ANSWER_SECONDS = int(os.environ["OPERATION_EFFECT_TIMEOUT_SECONDS"]) * 0.8


def charge(event: Event, key: str) -> Any:
    """Charges one order; returns what is to be stored of it. Raises what is known where there is no charge."""
    headers = {"Content-Type": "application/json", "Idempotency-Key": key}
    body = json.dumps({"order": event.id, "amount": read_amount(event.data)})
    try:
        answer = ask("POST", "/charges", body=body, headers=headers)
    except (ConnectTimeoutError, NewConnectionError) as error:
        # There was no connection, so nothing was asked. Any later error may have come after the charge.
        raise Retryable("provider-unreachable") from error
    match answer.status:
        case 200 | 201:
            return {"charge": json.loads(answer.data)["id"]}
        case 429:
            raise Retryable("too-many-requests", after_seconds=read_seconds(answer.headers))
        case 400 | 402 | 422:
            raise Final("charge-refused", f"the provider answered {answer.status}")
        case status:
            raise Uncertain("charge-unanswered", f"the provider answered {status}")


def find(event: Event, key: str) -> Applied | NotApplied | Unknown:
    """What became of a charge whose answer nobody has; only with the policy reconcile."""
    answer = ask("GET", f"/charges/{quote(key, safe='')}")
    match answer.status:
        case 200:
            return Applied({"charge": json.loads(answer.data)["charges"][0]["id"]})
        case 404:
            return NotApplied()
        case _:
            return Unknown()


def ask(method: str, path: str, **options: Any) -> Any:
    """One request, on a connection of its own: Lambda freezes the process between calls, and a kept one may be dead.

    Nothing is tried again here, since each attempt has to be known to the ledger.
    """
    timeout = urllib3.Timeout(connect=2, total=ANSWER_SECONDS)
    with urllib3.PoolManager(retries=False, timeout=timeout) as http:
        return http.request(method, f"{PROVIDER}{path}", **options)


def read_amount(order: Mapping[str, Any]) -> int:
    """The amount of an order, in cents. Raises Final: another delivery would not make it better."""
    match order.get("amount"):
        case int(amount) if amount > 0 and amount is not True:
            return amount
        case _:
            raise Final("amount-invalid", "an order has an amount of 1 or more, in cents")


def read_seconds(headers: Mapping[str, str]) -> float | None:
    """How long the provider asks to be left alone; None where it does not say so in seconds."""
    text = headers.get("Retry-After", "")
    return float(text) if text.isdecimal() else None


handler = operation(charge, reconcile=find)
