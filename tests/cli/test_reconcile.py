from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.cli.support import DAY, LEDGER, World, client_error, denied

NewWorld = Callable[..., World]


@pytest.fixture(params=["index", "scan"])
def either(request: pytest.FixtureRequest, new_world: NewWorld) -> World:
    """A ledger with its index, and one without."""
    return new_world(index=request.param == "index")


def totals(document: Any) -> tuple[int, int, int, int]:
    return document["found"], document["published"], document["settled_by_others"], len(document["left"])


def test_what_is_stuck_is_published_and_marked(either: World) -> None:
    for number in range(120):
        either.commit({"id": f"e-{number}", "total": number}, age=200 + number)
    either.commit({"id": "young"}, age=170)
    run = either.run("reconcile")
    assert run.exit_code == 0
    assert run.stdout.splitlines() == [
        "Reconciliation of orders",
        "┏━━━━━━━┳━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━┳━━━━━━┓",
        "┃ found ┃ published ┃ settled by others ┃ left ┃",
        "┡━━━━━━━╇━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━╇━━━━━━┩",
        "│ 120   │ 120       │ 0                 │ 0    │",
        "└───────┴───────────┴───────────────────┴──────┘",
        "Done: nothing is left (120 published).",
    ]
    assert either.published() == sorted(f"e-{number}" for number in range(120))
    statuses = either.statuses()
    assert statuses.pop("young") == "pending"
    assert set(statuses.values()) == {"sent"}


def test_a_settled_row_is_as_the_worker_leaves_it(either: World) -> None:
    either.commit({"id": "a"}, age=400, message_id="m-7")
    either.run("reconcile")
    row = either.ledger()["a"]
    assert row.keys() == {"event_id", "fingerprint", "created_at", "message_id", "status", "sent_at", "ttl"}
    assert row["sent_at"] == {"N": str(either.now_ms)}
    assert row["ttl"] == {"N": str(either.now_ms // 1000 + 30 * DAY)}
    assert row["message_id"] == {"S": "m-7"}


def test_a_second_run_finds_nothing(either: World) -> None:
    either.commit({"id": "a"}, age=400)
    either.run("reconcile")
    run = either.run("reconcile")
    assert (run.exit_code, run.verdict) == (0, "Nothing to publish.")
    assert either.published() == ["a"]


@pytest.mark.parametrize(("age", "published"), [(179, []), (180, ["a"])])
def test_what_is_younger_than_the_visibility_timeout_is_left_alone(
    world: World, age: int, published: list[str]
) -> None:
    world.commit({"id": "a"}, age=age)
    assert world.run("reconcile").exit_code == 0
    assert world.published() == published


def test_a_lower_age_may_be_asked_for_and_gets_a_remark(world: World) -> None:
    world.commit({"id": "a"}, age=20)
    run = world.run("reconcile", "--older-than", "10s")
    assert run.exit_code == 0
    assert run.stderr == (
        "The visibility timeout is 3m: a younger event may be in work, and is then announced twice.\n"
    )
    assert world.published() == ["a"]


def test_a_higher_age_leaves_younger_ones_and_needs_no_remark(world: World) -> None:
    world.commit({"id": "older"}, age=901)
    world.commit({"id": "younger"}, age=899)
    run = world.run("reconcile", "--older-than", "15m")
    assert (run.exit_code, run.stderr) == (0, "")
    assert world.published() == ["older"]


def test_json_is_one_document(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    assert world.run("reconcile", "--json").document == {
        "consumer": "orders",
        "found": 1,
        "published": 1,
        "settled_by_others": 0,
        "left_count": 0,
        "left": [],
        "unread": {},
        "verdict": "Done: nothing is left (1 published).",
    }


def test_a_dry_run_lists_and_publishes_nothing(either: World) -> None:
    either.commit({"id": "older"}, age=500)
    either.commit({"id": "old"}, age=400)
    either.commit({"id": "young"}, age=100)
    run = either.run("reconcile", "--dry-run")
    assert run.exit_code == 0
    assert run.stdout.splitlines() == [
        "To be published for orders",
        "┏━━━━━━━━━━┳━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━┓",
        "┃ event id ┃ age    ┃ notification bytes ┃",
        "┡━━━━━━━━━━╇━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━┩",
        "│ older    │ 8m 20s │ 33                 │",
        "│ old      │ 6m 40s │ 29                 │",
        "└──────────┴────────┴────────────────────┘",
        "A run would publish 2. Nothing was published.",
    ]
    assert either.published() == []
    assert set(either.statuses().values()) == {"pending"}
    assert either.requests("PublishBatch") == either.requests("BatchExecuteStatement") == []


def test_a_long_dry_run_shows_the_first_and_json_all(world: World) -> None:
    for number in range(25):
        world.commit({"id": f"e-{number:02}"}, age=500 - number)
    assert world.run("reconcile", "--dry-run").stdout.splitlines()[-2:] == [
        "and 5 more: --json lists all",
        "A run would publish 25. Nothing was published.",
    ]
    listed = world.run("reconcile", "--dry-run", "--json").document["would_publish"]
    assert [entry["event_id"] for entry in listed] == [f"e-{number:02}" for number in range(25)]
    assert listed[0].keys() == {"event_id", "age_seconds", "committed_at", "message_id", "notification_bytes"}
    assert (listed[0]["age_seconds"], listed[0]["message_id"], listed[0]["notification_bytes"]) == (500, "m-1", 31)


def test_a_dry_run_says_what_it_cannot_read(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.deny("BatchGetItem")
    assert world.run("reconcile", "--dry-run").stdout.splitlines()[-2:] == [
        "Rows could not be read: BatchGetItem: AccessDeniedException – you need dynamodb:BatchGetItem on "
        "orders-processed-events",
        "A run would publish 1, but 1 of them cannot be read. Nothing was published.",
    ]


@pytest.mark.parametrize(
    ("operation", "code", "line"),
    [
        (
            "PublishBatch",
            "AuthorizationError",
            "1 left: PublishBatch: AuthorizationError – you need sns:Publish on "
            "arn:aws:sns:us-east-1:123456789012:orders-notifications",
        ),
        (
            "PublishBatch",
            "KMSAccessDenied",
            "1 left: PublishBatch: KMSAccessDenied – you need kms:Decrypt and kms:GenerateDataKey on the topic's key",
        ),
        ("PublishBatch", "NotFound", "1 left: PublishBatch: NotFound"),
        (
            "BatchExecuteStatement",
            "AccessDeniedException",
            "1 left: BatchExecuteStatement: AccessDeniedException (published, but not marked: the next run announces "
            "them again) – you need dynamodb:PartiQLUpdate on orders-processed-events",
        ),
        (
            "BatchGetItem",
            "AccessDeniedException",
            "1 left: BatchGetItem: AccessDeniedException – you need dynamodb:BatchGetItem on orders-processed-events",
        ),
    ],
)
def test_what_is_left_has_its_reason_and_the_right_that_is_missing(
    either: World, operation: str, code: str, line: str
) -> None:
    either.commit({"id": "a"}, age=400)
    either.on(operation, raises=client_error(code, operation))
    run = either.run("reconcile")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2:] == [line, "1 left: mend the cause and run it again."]
    assert set(either.statuses().values()) == {"pending"}


def test_what_a_refused_run_has_not_tried_is_left_and_settled_by_nobody(either: World) -> None:
    for number in range(120):
        either.commit({"id": f"o-{number}"}, age=400)
    either.deny("PublishBatch")
    document = either.run("reconcile", "--json").document
    assert (document["found"], document["published"], document["settled_by_others"]) == (120, 0, 0)
    assert document["left_count"] == 120
    assert len(document["left"]) <= 50
    tried = len(document["left"])
    assert document["verdict"] == (
        f"120 left, {tried} of them tried: the run ended at the first page that was refused as a whole. Mend the cause "
        "and run it again."
    )


def test_json_has_the_reason_of_each_that_is_left(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.deny("PublishBatch")
    document = world.run("reconcile", "--json").document
    assert document["left"] == [
        {"event_id": "a", "reason": "misconfigured", "detail": "PublishBatch: AccessDeniedException"}
    ]


def test_a_row_that_cannot_be_published_holds_up_no_other(either: World) -> None:
    either.commit({"id": "broken"}, age=900)
    either.store(LEDGER, {**either.ledger()["broken"], "notification": {"S": "{"}})
    either.commit({"id": "whole"}, age=400)
    run = either.run("reconcile")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2:] == [
        "1 left: pending, without a notification",
        "1 left: mend the cause and run it again.",
    ]
    assert either.statuses() == {"broken": "pending", "whole": "sent"}
    assert either.published() == ["whole"]


def test_parts_of_the_index_that_may_not_be_read_are_said(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.deny("Query")
    run = world.run("reconcile")
    assert run.exit_code == 1
    assert run.stdout.splitlines()[-2:] == [
        "16 of the parts of the ledger could not be read: Query: AccessDeniedException – you need dynamodb:Query on "
        "orders-processed-events/index/pending",
        "Not all of the ledger could be read: events may be left that nobody has announced.",
    ]


def test_what_stands_behind_a_page_that_cannot_be_read_is_left(world: World) -> None:
    for number in range(120):
        world.commit({"id": f"e-{number}"}, age=400)

    def pages_denied(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        if request.get("ProjectionExpression") == "event_id":
            raise denied("Query")
        return effect()

    world.on("Query", answers=pages_denied)
    document = world.run("reconcile", "--json").document
    assert (document["found"], document["settled_by_others"], document["left_count"]) == (120, 0, 120)


def test_without_the_right_to_scan_nothing_is_published(new_world: NewWorld) -> None:
    world = new_world(index=False)
    world.commit({"id": "a"}, age=400)
    world.deny("Scan")
    run = world.run("reconcile")
    assert (run.exit_code, run.stdout) == (2, "")
    assert world.published() == []


def test_what_the_worker_settles_meanwhile_is_not_published_again(either: World) -> None:
    either.commit({"id": "a"}, age=400)
    either.commit({"id": "b"}, age=400)
    either.on("BatchGetItem", runs=lambda: either.mark("a"), calls=[1])
    document = either.run("reconcile", "--json").document
    assert totals(document) == (2, 1, 1, 0)
    assert either.published() == ["b"]


def test_what_leaves_the_index_before_it_is_read_was_settled_by_others(world: World) -> None:
    """The survey has seen it, no page has it any more."""
    world.commit({"id": "a"}, age=400)

    def settle(request: Any, effect: Callable[[], Any]) -> Any:
        answer = effect()
        if request.get("Select") == "COUNT" and answer["Count"]:
            world.mark("a")
        return answer

    world.on("Query", answers=settle)
    run = world.run("reconcile", "--json")
    assert run.exit_code == 0
    assert totals(run.document) == (1, 0, 1, 0)


def test_a_consumer_without_a_topic_has_nothing_to_publish(new_world: NewWorld) -> None:
    run = new_world(topic=False).run("reconcile")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr == ("Error: orders publishes no notifications: there is no topic, and nothing is pending\n")


def test_events_from_before_the_topic_was_taken_away_need_it_back(either: World) -> None:
    for event_id in ("a", "b"):
        either.commit({"id": event_id}, age=400)
    either.deploy(TOPIC_ARN=None)
    run = either.run("reconcile")
    assert (run.exit_code, run.stdout) == (2, "")
    assert run.stderr.splitlines()[-1] == (
        "Error: orders has no topic any more, but 2 pending events from before: bring the topic back "
        "(notification.create_topic or topic_arn), and run it again"
    )


def test_a_topic_of_another_region_is_called_there(new_world: NewWorld) -> None:
    world = new_world(topic_region="eu-west-1")
    world.commit({"id": "a"}, age=400)
    world.run("reconcile")
    assert [call.region for call in world.calls if call.operation == "PublishBatch"] == ["eu-west-1"]
    assert {call.region for call in world.calls if call.operation == "Query"} == {"us-east-1"}


def test_a_fifo_topic_gets_groups_and_deduplication_ids(new_world: NewWorld) -> None:
    world = new_world(fifo=True, fifo_topic=True)
    world.commit({"id": "a"}, age=400)
    assert world.run("reconcile").exit_code == 0
    assert world.published() == ["a"]


def test_an_interrupted_run_says_how_far_it_came(either: World) -> None:
    for number in range(200):
        either.commit({"id": f"e-{number}"}, age=400 + number)
    either.on("BatchGetItem", raises=KeyboardInterrupt(), calls=[4])
    run = either.run("reconcile")
    assert (run.exit_code, run.stdout) == (130, "")
    sent = sum(status == "sent" for status in either.statuses().values())
    assert run.stderr.splitlines()[-1] == (
        f"Stopped: {sent} of 200 published and marked. Up to 50 that were in work may be announced again by the next "
        "run."
    )
    assert 0 < sent < 200


def test_a_run_that_is_interrupted_at_once_says_so(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.on("PublishBatch", raises=KeyboardInterrupt())
    run = world.run("reconcile")
    assert (run.exit_code, run.stderr) == (
        130,
        "Stopped: none published and marked. Up to 50 that were in work may be announced again by the next run.\n",
    )
    assert world.statuses() == {"a": "pending"}


def test_an_answer_that_is_lost_leads_to_a_second_announcement_at_worst(world: World) -> None:
    world.commit({"id": "a"}, age=400)
    world.on("PublishBatch", raises=denied("PublishBatch"), after=True, calls=[1])
    assert world.run("reconcile").exit_code == 1
    assert world.run("reconcile").exit_code == 0
    assert world.published() == ["a", "a"]
    assert world.statuses() == {"a": "sent"}
