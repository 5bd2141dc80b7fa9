"""How much is in a queue, and what takes it from there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from idempotent_consumer_cli.consumer.discovery import Consumer

# The other states of an event source mapping are on the way to one of these, or work.
_PAUSED = frozenset({"Disabled", "Disabling", "Deleting"})


@dataclass(frozen=True, slots=True)
class Depth:
    """Messages of a queue, roughly. in_flight: received by somebody, and not deleted."""

    visible: int
    in_flight: int
    delayed: int = 0

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed


@dataclass(frozen=True)
class SourceMapping:
    """What gives the queue's messages to the function. problem: why it cannot, in Lambda's words."""

    uuid: str
    state: str
    problem: str = ""

    @property
    def is_paused(self) -> bool:
        return self.state in _PAUSED


def depth_of(attributes: Mapping[str, str]) -> Depth:
    """attributes: as SQS gives them; what was not asked for counts as none."""
    names = (
        "ApproximateNumberOfMessages",
        "ApproximateNumberOfMessagesNotVisible",
        "ApproximateNumberOfMessagesDelayed",
    )
    return Depth(*(int(attributes.get(name, 0)) for name in names))


def source_mappings(functions: Any, consumer: Consumer, queue_arn: str | None) -> list[SourceMapping]:
    """Those of the consumer's function on its queue. queue_arn: None where it cannot be read.

    By the queue, since a mapping may stand on an alias of the function. Raises what a call to Lambda raises.
    """
    request = {"EventSourceArn": queue_arn} if queue_arn else {"FunctionName": consumer.function_name}
    pages = functions.get_paginator("list_event_source_mappings").paginate(**request)
    return [
        SourceMapping(str(mapping["UUID"]), str(mapping["State"]), _problem(mapping))
        for page in pages
        for mapping in page["EventSourceMappings"]
        if f":function:{consumer.function_name}:" in f"{mapping['FunctionArn']}:"
    ]


def _problem(mapping: Mapping[str, Any]) -> str:
    result = str(mapping.get("LastProcessingResult", ""))
    return result.partition(":")[2].strip() or result if result.startswith("PROBLEM") else ""
