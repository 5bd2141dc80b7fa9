"""All scopes, with their bounds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan
from idempotent_consumer.rejection import Reject
from tests.exploration.faults import deaths_only
from tests.exploration.operation_scope import POLICIES, OperationScope
from tests.exploration.pipeline import Message
from tests.exploration.pipeline_scope import Delivery, PipelineScope, count, other_code, silent
from tests.exploration.search import Scope
from tests.exploration.workflow_scope import WorkflowScope


def order(number: int, *reasons: str, group: str | None = None, **data: Any) -> Message:
    body = json.dumps({"id": f"order-{number}", "total": 1, **data})
    return Message(f"m-{number}", body, group, frozenset(reasons))


def objects(number: int, *keys: str, reasons: Sequence[str] = (), **sizes: int) -> Message:
    """An S3 notification of several objects. sizes: of those of which it is not 1."""
    records = [{"s3": {"bucket": {"name": "b"}, "object": {"key": key, "size": sizes.get(key, 1)}}} for key in keys]
    return Message(f"m-{number}", json.dumps({"Records": records}), None, frozenset(reasons))


def poison(number: int, group: str | None = None) -> Message:
    return Message(f"m-{number}", f'{{"id": {number}', group, frozenset({"bad-json"}), must_die=True)


OBJECTS = {
    "EVENT_ENVELOPE": "s3",
    "EVENT_ID": "s3.object.key",
    "EVENT_ITEM": "{id: s3.object.key, total: s3.object.size}",
    "NOTIFICATION_MESSAGE": "s3.object.key",
}
ROWS = {"EVENT_ID": "event"}
VERSIONS = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "total"}


def strict(_event: Event) -> Plan:
    """A plan of later code, which takes no event any more."""
    raise Reject("too-late")


ONE, TWO, THREE = ["m-1"], ["m-1", "m-2"], ["m-1", "m-2", "m-3"]
LINE = [order(1, group="g"), poison(2, "g"), order(3, group="g")]

PIPELINE: Sequence[Scope] = (
    PipelineScope("twice", "a message delivered twice", [order(1)], [Delivery(ONE), Delivery(ONE, 2)], 2),
    PipelineScope(
        "thrice", "a message delivered three times", [order(1)], [Delivery(ONE), Delivery(ONE), Delivery(ONE, 2)], 1
    ),
    PipelineScope(
        "thrice, deaths",
        "a message delivered three times, to processes that die",
        [order(1)],
        [Delivery(ONE), Delivery(ONE), Delivery(ONE)],
        2,
        faults=deaths_only,
    ),
    PipelineScope(
        "group",
        "two messages in one transaction, delivered twice in another order",
        [order(1), order(2)],
        [Delivery(TWO), Delivery(TWO[::-1])],
        1,
    ),
    PipelineScope(
        "id reused",
        "two messages with one event id and other content",
        [order(1, "id-reused"), order(2, "id-reused", id="order-1", total=2)],
        [Delivery(ONE), Delivery(["m-2"])],
        2,
    ),
    PipelineScope(
        "id reused in a batch",
        "the same in one batch, and a third message beside them",
        [order(1, "id-reused"), order(2, "id-reused", id="order-1", total=2), order(3)],
        [Delivery(THREE), Delivery(["m-2", "m-3"])],
        1,
    ),
    PipelineScope(
        "row in the way",
        "two events of which both want to insert the same row",
        [order(1, "row-exists", event="a", id="row"), order(2, "row-exists", event="b", id="row")],
        [Delivery(ONE), Delivery(["m-2"])],
        2,
        environment=ROWS,
    ),
    PipelineScope(
        "versions",
        "two events with versions of the same row",
        [order(1, event="a", id="row", total=1), order(2, event="b", id="row", total=2)],
        [Delivery(TWO), Delivery(["m-2"])],
        1,
        environment=VERSIONS,
    ),
    PipelineScope(
        "same version",
        "two events with the same version of a row",
        [order(1, event="a", id="row"), order(2, event="b", id="row")],
        [Delivery(ONE), Delivery(["m-2"])],
        1,
        environment=VERSIONS,
    ),
    PipelineScope(
        "superseded twice",
        "an event with an older version, delivered twice beside the newer one",
        [order(1, event="a", id="row", total=1), order(2, event="b", id="row", total=2)],
        [Delivery(ONE), Delivery(ONE), Delivery(["m-2"])],
        2,
        environment=VERSIONS,
        schedules=20_000,
    ),
    PipelineScope(
        "expiry",
        "the ledger row expires at any moment",
        [order(1)],
        [Delivery(ONE), Delivery(ONE, 2)],
        1,
        moves=["expire"],
    ),
    PipelineScope(
        "not swept yet",
        "the ledger row is past its time to live, and still there",
        [order(1)],
        [Delivery(ONE), Delivery(ONE, 2)],
        1,
        moves=["pass_window"],
    ),
    PipelineScope(
        "other code",
        "the code has changed between two deliveries",
        [order(1)],
        [Delivery(ONE), Delivery(ONE, 2, other_code)],
        2,
    ),
    PipelineScope(
        "no notification",
        "a plan that tells nobody",
        [order(1)],
        [Delivery(ONE, 1, silent), Delivery(ONE, 2, silent)],
        2,
    ),
    PipelineScope(
        "several events",
        "messages of two events each, one of them in both",
        [objects(1, "a", "b"), objects(2, "b", "c")],
        [Delivery(ONE), Delivery(["m-2"])],
        1,
        environment=OBJECTS,
    ),
    PipelineScope(
        "half a message",
        "messages of two events each, one of them in both with other content",
        [objects(1, "a", "b", reasons=["id-reused"]), objects(2, "b", "c", reasons=["id-reused"], b=2)],
        [Delivery(ONE), Delivery(["m-2"])],
        1,
        environment=OBJECTS,
    ),
    PipelineScope(
        "stricter code",
        "the code rejects at the second delivery what it may have committed at the first",
        [order(1, "too-late")],
        [Delivery(ONE), Delivery(ONE, 2, strict)],
        2,
    ),
    PipelineScope(
        "counter",
        "events that all add to one row",
        [order(1), order(2)],
        [Delivery(TWO, 1, count), Delivery(["m-2"], 2, count)],
        1,
    ),
    PipelineScope("FIFO", "a group with poison in the middle", LINE, [Delivery(THREE), Delivery(THREE, 2)], 1),
    PipelineScope(
        "FIFO topic",
        "a group whose notifications go to a FIFO topic",
        [order(1, group="g"), order(2, group="g")],
        [Delivery(TWO), Delivery(TWO, 2)],
        1,
        environment={"TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:orders.fifo"},
    ),
    PipelineScope(
        "FIFO, id reused",
        "a group with an event in the middle that can only be refused",
        [order(1, group="g"), order(2, "id-reused", group="g", id="order-1", total=2), order(3, group="g")],
        [Delivery(THREE), Delivery(THREE, 2)],
        1,
        schedules=40_000,
    ),
    PipelineScope("reconciler", "a hasty reconciler beside a delivery", [order(1)], [Delivery(ONE)], 1, reconcilers=1),
    PipelineScope("reconcilers", "two of them", [order(1)], [Delivery(ONE)], 2, reconcilers=2, schedules=40_000),
)
# Larger ones, of which chance draws some.
CROWD = [order(1), order(2, "id-reused"), order(3, "id-reused", id="order-2", total=2), poison(4)]
CROWD_IDS = [message.id for message in CROWD]
LINES = [
    order(1, group="g"),
    order(2, group="h"),
    poison(3, "g"),
    order(4, group="g"),
    order(5, group="h"),
    poison(6, "g"),
]
LINES_IDS = [message.id for message in LINES]
STORMS: Sequence[Scope] = (
    PipelineScope(
        "storm",
        "a batch with all kinds of messages, at three deliveries and a hasty reconciler",
        CROWD,
        [Delivery(CROWD_IDS), Delivery(CROWD_IDS[::-1]), Delivery(CROWD_IDS[:2], 2, other_code)],
        4,
        reconcilers=1,
        moves=["expire"],
        schedules=20_000,
    ),
    PipelineScope(
        "FIFO storm",
        "two groups with poison in one of them, at three deliveries",
        LINES,
        [Delivery(LINES_IDS), Delivery(LINES_IDS, 2), Delivery(LINES_IDS[:3])],
        4,
        schedules=20_000,
    ),
    PipelineScope(
        "counter storm",
        "events that all add to one row, at three deliveries",
        [order(1), order(2), order(3)],
        [Delivery(THREE, 1, count), Delivery(THREE[::-1], 1, count), Delivery(TWO, 2, count)],
        4,
        schedules=60_000,
    ),
)

PAYMENT = order(1, "outcome-unknown", "declined", "id-reused")
REFUND = order(2, "outcome-unknown", "declined", "id-reused")
LATER = ("end_lease", "arrive", "settle_provider")
CLOCKS = (60_000, -60_000, 0)
OPERATION: Sequence[Scope] = (
    *(
        OperationScope(f"operation, {policy}", "an effect at two workers", [PAYMENT], [ONE, ONE], 2, policy)
        for policy in POLICIES
    ),
    *(
        OperationScope(
            f"operation, {policy}, leases",
            "the same, as time passes, and with clocks that are off by a minute",
            [PAYMENT],
            [ONE, ONE],
            1,
            policy,
            CLOCKS,
            LATER,
            schedules=60_000,
        )
        for policy in POLICIES
    ),
    *(
        OperationScope(
            f"operation, {policy}, end of function",
            "the same, as the function's time passes",
            [PAYMENT],
            [ONE, ONE],
            0,
            policy,
            CLOCKS,
            ("almost_end", "end_function"),
            is_mortal=policy == "reconcile",
        )
        for policy in POLICIES
    ),
    *(
        OperationScope(
            f"operation, {policy}, id reused",
            "two messages with one id and other content",
            [PAYMENT, order(2, "outcome-unknown", "declined", "id-reused", id="order-1", total=2)],
            [ONE, ["m-2"]],
            1,
            policy,
        )
        for policy in POLICIES
    ),
    *(
        OperationScope(
            f"operation, {policy}, storm",
            "two effects at three workers, as time passes",
            [PAYMENT, REFUND],
            [TWO, TWO[::-1], ONE],
            4,
            policy,
            CLOCKS,
            LATER,
            is_mortal=policy == "reconcile",
            schedules=60_000,
        )
        for policy in POLICIES
    ),
)

BODY, OTHER_BODY = '{"id": "a", "total": 1}', '{"id": "a", "total": 2}'
WORKFLOW: Sequence[Scope] = (
    WorkflowScope(
        "workflow, start", "two messages of one key at two starters", "direct", (BODY, BODY), 2, is_fresh=True
    ),
    *(
        WorkflowScope(
            f"workflow, {told}, {guard} guard", about, guard, bodies, most_faults, redelivered, moves, schedules
        )
        for guard in ("direct", "function")
        for told, about, bodies, most_faults, redelivered, moves, schedules in (
            ("twice", "two messages of one key", (BODY, BODY), 3, (), (), None),
            ("thrice", "three messages of one key", (BODY, BODY, BODY), 1, (), (), None),
            ("conflict", "two messages of one key and other content", (BODY, OTHER_BODY), 2, (), (), None),
            ("redelivery", "a message that comes again while its execution runs", (BODY,), 2, ("m-1",), (), None),
            ("expiry", "claims expire at any moment", (BODY, BODY), 1, (), ("expire",), None),
            ("storm", "four messages of one key", (BODY, BODY, BODY, OTHER_BODY), 5, ("m-1",), ("expire",), 80_000),
        )
    ),
)

SCOPES: Sequence[Scope] = (*PIPELINE, *STORMS, *OPERATION, *WORKFLOW)
BOUND = (
    "All schedules of two deliveries of one event with all faults at up to two calls, of three with all faults at one "
    "or two deaths; of batches, FIFO groups and messages of several events at two deliveries with all faults at one "
    "call; of two workers of an operation with up to two faults; of up to three executions of a workflow. By chance: "
    "larger ones, and operations as time passes."
)
