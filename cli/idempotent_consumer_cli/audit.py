"""What persons have decided about a row, as it stands there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from idempotent_consumer.items import AttributeValue
from idempotent_consumer_cli.clock import moment_or_none
from idempotent_consumer_cli.numbers import whole_number


def decisions(audit: Sequence[AttributeValue]) -> list[dict[str, Any]]:
    """In order: when, who, how (completed, failed, retry, release) and why."""
    return [_decision(entry.get("M", {})) for entry in audit]


def _decision(entry: dict[str, AttributeValue]) -> dict[str, Any]:
    texts = {name: str(entry.get(name, {}).get("S", "")) for name in ("by", "how", "why")}
    return {"at": moment_or_none(whole_number(entry, "at")), **texts}
