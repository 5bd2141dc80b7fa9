"""A workflow's dead letters as a replay sends them. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from idempotent_consumer.dead_letter import DETAIL, REASON
from idempotent_consumer.items import MAX_HASH_KEY_BYTES
from idempotent_consumer.message import REFUSED_CHARACTER, Message
from idempotent_consumer.rejection import Rejected
from idempotent_consumer.workflow.input import KEY_ATTRIBUTE, FailedExecution, execution_input, failed_execution
from idempotent_consumer.workflow.settings import MESSAGE_ID_KEY, WorkflowSettings
from idempotent_consumer_cli.letters.letter import EXECUTION, MOST_ATTRIBUTES, Letter, from_text, text_attribute
from idempotent_consumer_cli.letters.opened import TOO_DEEP, Opened, OpenedLetter, open_letter


def open_for_replay(letter: Letter, settings: WorkflowSettings, *, is_fifo: bool) -> OpenedLetter:
    """A letter as it is sent back, with its events.

    What EventBridge says of an execution that has ended becomes the message that this was for. All letters get their
    key, by which the workflow knows a replay, and by which one without a business key is known at all.
    """
    inside = unwrapped(letter, settings.state_machine_arn)
    if inside.received is not None and inside.body == letter.body:
        missing = Rejected("input-missing", f"what the event holds is not the input of {inside.execution or 'it'}")
        return OpenedLetter(inside, (Opened(None, missing),))
    kept = inside.key or ""
    own_key = kept if kept.startswith(MESSAGE_ID_KEY) else MESSAGE_ID_KEY + inside.message_id
    opened = open_letter(inside, settings, own_key, is_fifo=is_fifo)
    if settings.event_id is None:
        sent = _with_key(inside, own_key)
        is_of_claim = kept == own_key
    else:
        sent = _with_key(inside, inside.key or next(iter(opened.event_ids), None))
        is_of_claim = inside.key is not None
    sent = replace(sent, is_of_claim=is_of_claim)
    return OpenedLetter(sent, tuple(_checked(event, sent) for event in opened.events))


def unwrapped(letter: Letter, state_machine_arn: str) -> Letter:
    """The message inside an event that tells how an execution of this state machine ended; else the letter itself.

    EventBridge sends such an event, and so does the execution where the message has many attributes. What EventBridge
    sent says why it is here as other letters do: reason `aborted`, `timed-out` or `failed`, and the error as detail.
    Where the event does not hold the message, its body stays.
    """
    failed = failed_execution(letter.body, state_machine_arn)
    if failed is None:
        return letter
    reason = failed.status.lower().replace("_", "-")
    tells = {REASON: reason, EXECUTION: failed.execution_arn, DETAIL: failed.error}
    own: dict[str, Mapping[str, Any]] = {name: text_attribute(text) for name, text in tells.items() if text}
    if REASON in letter.attributes:
        own = {name: letter.attributes[name] for name in tells if name in letter.attributes}
    bare = replace(letter, attributes=own, received=letter)
    try:
        return bare if failed.body is None else replace(bare, body=failed.body, attributes=_attributes(failed) | own)
    except (KeyError, TypeError, ValueError):
        return bare


def _attributes(failed: FailedExecution) -> dict[str, Mapping[str, Any]]:
    """Without those of an earlier stay."""
    given: dict[str, Mapping[str, Any]] = {name: from_text(value) for name, value in failed.attributes.items()}
    kept = {name: value for name, value in given.items() if name not in (REASON, DETAIL, EXECUTION)}
    return kept | {KEY_ATTRIBUTE: text_attribute(_sendable(failed.key))}


def _with_key(letter: Letter, key: str | None) -> Letter:
    """With the key among its attributes, where it has one and there is room."""
    is_full = letter.key is None and len(letter.producers_attributes) >= MOST_ATTRIBUTES
    if key is None or key == letter.key or is_full:
        return letter
    attributes = {**letter.attributes, KEY_ATTRIBUTE: text_attribute(_sendable(key))}
    return replace(letter, attributes=attributes, received=letter.received or letter)


def _sendable(key: str) -> str:
    """Of a business key it only counts that there is one: the event tells which."""
    return REFUSED_CHARACTER.sub("?", key)


def _checked(opened: Opened, letter: Letter) -> Opened:
    """With the reason for which the starter, or the guard, refuses it whatever the claim says."""
    if opened.event is None:
        return opened
    size = len(opened.event.id.encode())
    if size > MAX_HASH_KEY_BYTES:
        return replace(opened, rejected=Rejected("guard-failed", f"the key has {size} UTF-8 bytes"))
    try:
        execution_input(opened.event, _message(letter))
    except Rejected as rejected:
        return replace(opened, rejected=rejected)
    except RecursionError:
        return replace(opened, rejected=TOO_DEEP)
    except Exception as error:  # the starter fails here too, whenever it is tried
        return replace(opened, rejected=Rejected("fault", type(error).__name__))
    return opened


def _message(letter: Letter) -> Message:
    """As the starter gets it. The id of the message that a replay will make has the same length."""
    attributes = {name: _to_record(value) for name, value in letter.producers_attributes.items()}
    return Message("0" * 36, letter.body, None, letter.sent_ms, 1, attributes)


def _to_record(value: Mapping[str, Any]) -> dict[str, str]:
    if "BinaryValue" in value:
        return {"dataType": value["DataType"], "binaryValue": base64.b64encode(value["BinaryValue"]).decode("ascii")}
    return {"dataType": value["DataType"], "stringValue": value["StringValue"]}
