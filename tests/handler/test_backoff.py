"""What has to come back stays away the longer, the more often it came; that this fails changes nothing else."""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ConnectTimeoutError
from botocore.parsers import ResponseParserError

from idempotent_consumer import backoff as backoff_module
from idempotent_consumer import consumer as consumer_module
from idempotent_consumer.backoff import hidden_seconds
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan, Planner
from idempotent_consumer.settings import Backoff
from idempotent_consumer.settlement import Misconfigured
from tests.handler.pending_model import Clock, IndexedWorld
from tests.handler.support import (
    COMMIT,
    HIDE,
    NOTHING_FAILED,
    NOW_MS,
    PUBLISH,
    Cloud,
    Context,
    client_error,
    events_of,
    record,
    reported,
)
from tests.handler.table_model import Effect, Request

QUEUE_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/orders"
BACKOFF: dict[str, Any] = {
    "QUEUE_URL": QUEUE_URL,
    "VISIBILITY_TIMEOUT_SECONDS": "30",
    "BACKOFF_MAX_SECONDS": "900",
}
HALF_A_MINUTE = Backoff(QUEUE_URL, 30, 900)
DOWN = client_error("InternalServerError")
PATIENCE_SECONDS = 30

Drawn = list[tuple[int, int]]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    """The bounds of each draw; the nth draw gives n more than the least."""
    bounds: Drawn = []

    def draw(least: int, most: int) -> int:
        bounds.append((least, most))
        return least + len(bounds)

    monkeypatch.setattr(
        backoff_module, "hidden_seconds", lambda receives, backoff: hidden_seconds(receives, backoff, draw)
    )
    return bounds


def message(message_id: str, body: Any = None, **options: Any) -> dict[str, Any]:
    """Each message has an event and a receipt handle of its own."""
    own = {"id": message_id.replace("m-", "o-")} if body is None else body
    return record(message_id, own, **options) | {"receiptHandle": f"handle of {message_id}"}


def take_all(cloud: Cloud) -> None:
    """The queue knows all handles."""

    def answer(request: dict[str, Any], _effect: Callable[[], Any]) -> Any:
        return {"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}

    cloud.on(HIDE, answers=answer)


def hidden(cloud: Cloud) -> dict[str, int]:
    """The messages whose visibility was set, with the seconds."""
    entries = [entry for request in cloud.requests(HIDE) for entry in request["Entries"]]
    handles = [entry["ReceiptHandle"] for entry in entries]
    assert len(set(handles)) == len(handles), "each message once"
    return {entry["ReceiptHandle"].removeprefix("handle of "): entry["VisibilityTimeout"] for entry in entries}


def fails(event: Event) -> Plan:
    raise TypeError("of our own")


# How long


@pytest.mark.parametrize(
    ("receive_count", "bounds"),
    [(1, (30, 60)), (2, (30, 120)), (3, (30, 240)), (4, (30, 480)), (5, (30, 900)), (1_000, (30, 900))],
)
def test_draw_lies_between_the_timeout_and_twice_that_for_each_receive(
    receive_count: int, bounds: tuple[int, int]
) -> None:
    drawn: Drawn = []

    def draw(least: int, most: int) -> int:
        drawn.append((least, most))
        return 47

    assert hidden_seconds(receive_count, HALF_A_MINUTE, draw) == 47
    assert drawn == [bounds]


def test_draw_never_falls_below_the_queue_s_timeout() -> None:
    drawn: Drawn = []

    def draw(least: int, most: int) -> int:
        drawn.append((least, most))
        return least

    assert hidden_seconds(1, Backoff(QUEUE_URL, 30, 20), draw) == 30
    assert drawn == [(30, 30)]


def test_both_bounds_are_drawn() -> None:
    assert {hidden_seconds(1, Backoff(QUEUE_URL, 1, 900)) for _ in range(200)} == {1, 2}


def test_cap_is_drawn_too() -> None:
    assert {hidden_seconds(9, Backoff(QUEUE_URL, 1, 3)) for _ in range(200)} == {1, 2, 3}


def test_draw_comes_from_the_system_and_not_from_a_state_that_snapstart_would_clone() -> None:
    (draw,) = hidden_seconds.__defaults__ or ()
    assert isinstance(draw.__self__, random.SystemRandom)
    assert draw.__name__ == "randint"


# Which messages


def test_message_that_comes_back_is_hidden_by_one_literal_call(cloud: Cloud, drawn: Drawn) -> None:
    cloud.on(COMMIT, raises=DOWN)
    assert cloud.deliver(message("m-1", receive_count=2), **BACKOFF) == reported("m-1")
    assert drawn == [(30, 120)]
    assert cloud.requests(HIDE) == [
        {
            "QueueUrl": "https://sqs.us-east-1.amazonaws.com/123456789012/orders",
            "Entries": [{"Id": "0", "ReceiptHandle": "handle of m-1", "VisibilityTimeout": 31}],
        }
    ]


def test_each_message_of_a_standard_queue_has_a_value_of_its_own(cloud: Cloud, drawn: Drawn) -> None:
    cloud.on(COMMIT, raises=DOWN)
    batch = [message(f"m-{count}", receive_count=count) for count in (1, 2, 3)]
    assert cloud.deliver(*batch, **BACKOFF) == reported("m-1", "m-2", "m-3")
    assert drawn == [(30, 60), (30, 120), (30, 240)]
    assert hidden(cloud) == {"m-1": 31, "m-2": 32, "m-3": 33}


def test_group_of_a_standard_queue_is_for_fairness_and_hides_nothing_else(cloud: Cloud, drawn: Drawn) -> None:
    batch = [message(f"m-{number}") for number in (1, 2)]
    for each in batch:
        each["attributes"]["MessageGroupId"] = "tenant-1"
    cloud.on(COMMIT, raises=DOWN)
    cloud.deliver(*batch, **BACKOFF)
    assert hidden(cloud) == {"m-1": 31, "m-2": 32}


@pytest.mark.alone
def test_what_is_deleted_or_dead_lettered_is_not_hidden(cloud: Cloud, drawn: Drawn) -> None:
    cloud.on(COMMIT, raises=DOWN, calls=[2])
    batch = [message("m-1"), message("m-2", "poison"), message("m-3"), message("m-4")]
    assert cloud.deliver(*batch, **BACKOFF) == reported("m-3")
    assert cloud.reasons() == ["bad-json"]
    assert hidden(cloud) == {"m-3": 31}


def test_batch_that_is_settled_makes_no_call(cloud: Cloud) -> None:
    assert cloud.deliver(message("m-1"), message("m-2", "poison"), **BACKOFF) == NOTHING_FAILED
    assert cloud.count(HIDE) == 0


def test_message_of_several_events_is_hidden_once(cloud: Cloud, drawn: Drawn) -> None:
    s3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ITEM": "{id: s3.object.key}", "EVENT_ID": "s3.object.key"}
    body = {"Records": [{"s3": {"object": {"key": key}}} for key in "abc"]}
    cloud.on(COMMIT, raises=DOWN)
    assert cloud.deliver(message("m-1", body), **s3, **BACKOFF) == reported("m-1")
    assert hidden(cloud) == {"m-1": 31}


def test_poison_that_cannot_be_buried_is_hidden(cloud: Cloud, drawn: Drawn) -> None:
    cloud.on("SendMessage", raises=DOWN)
    assert cloud.deliver(message("m-1", "poison"), message("m-2"), **BACKOFF) == reported("m-1")
    assert hidden(cloud) == {"m-1": 31}


# FIFO


def test_all_that_comes_back_of_a_group_gets_the_value_of_its_head(fifo_cloud: Cloud, drawn: Drawn) -> None:
    """a-1 is settled, a-2 fails to be published, a-3 is settled behind it, b-1 fails too, c-1 is settled."""

    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        result = effect()
        failed = [entry for entry in result["Successful"] if entry["Id"] in failing(request)]
        others = [entry for entry in result["Successful"] if entry not in failed]
        return {"Successful": others, "Failed": [{"Id": entry["Id"], "Code": "Internal"} for entry in failed]}

    def failing(request: dict[str, Any]) -> list[str]:
        entries = request["PublishBatchRequestEntries"]
        return [entry["Id"] for entry in entries if entry["Message"] in ('{"id":"a-2"}', '{"id":"b-1"}')]

    fifo_cloud.on(PUBLISH, answers=answer)
    batch = [
        message("a-1", group="a", receive_count=9),
        message("a-2", group="a", receive_count=3),
        message("b-1", group="b", receive_count=2),
        message("c-1", group="c", receive_count=1),
        message("a-3", group="a", receive_count=1),
    ]
    assert fifo_cloud.deliver(*batch, **BACKOFF) == reported("a-2", "b-1", "a-3")
    assert fifo_cloud.statuses() == {"a-1": "sent", "a-2": "pending", "b-1": "pending", "c-1": "sent", "a-3": "sent"}
    assert drawn == [(30, 240), (30, 120)]
    assert hidden(fifo_cloud) == {"a-2": 31, "b-1": 32, "a-3": 31}


@pytest.mark.alone
def test_what_is_blocked_behind_a_head_gets_its_value(fifo_cloud: Cloud, drawn: Drawn) -> None:
    fifo_cloud.on(COMMIT, raises=DOWN, calls=[1])
    batch = [message("a-1", group="a", receive_count=2), *(message(f"a-{n}", group="a") for n in (2, 3, 4))]
    assert fifo_cloud.deliver(*batch, **BACKOFF) == reported("a-1", "a-2", "a-3", "a-4")
    assert fifo_cloud.statuses() == {}
    assert drawn == [(30, 120)]
    assert hidden(fifo_cloud) == {"a-1": 31, "a-2": 31, "a-3": 31, "a-4": 31}


def test_group_keeps_its_value_over_the_parts_of_a_batch(
    fifo_cloud: Cloud, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        if {"a-1", "b-1"} & set(events_of(request)):
            raise DOWN
        return effect()

    monkeypatch.setattr(consumer_module, "PART", 2)
    fifo_cloud.on(COMMIT, answers=answer)
    take_all(fifo_cloud)
    batch = [message(name, group=name[0]) for name in ("a-1", "b-1", "a-2", "a-3", "b-2", "c-1")]
    assert fifo_cloud.deliver(*batch, **BACKOFF) == reported("a-1", "b-1", "a-2", "a-3", "b-2")
    assert [len(request["Entries"]) for request in fifo_cloud.requests(HIDE)] == [2, 2, 1]
    assert hidden(fifo_cloud) == {"a-1": 31, "b-1": 32, "a-2": 31, "a-3": 31, "b-2": 32}


def test_group_gets_another_value_in_the_next_invocation(fifo_cloud: Cloud, drawn: Drawn) -> None:
    """I8: nothing survives an invocation."""
    fifo_cloud.on(COMMIT, raises=DOWN)
    consumer = fifo_cloud.consumer(**BACKOFF)
    for count in (1, 2):
        records = [message("a-1", group="a", receive_count=count)]
        assert consumer.handle({"Records": records}, Context(fifo_cloud)) == reported("a-1")
    assert drawn == [(30, 60), (30, 120)]
    assert [request["Entries"][0]["VisibilityTimeout"] for request in fifo_cloud.requests(HIDE)] == [31, 32]


# How it is called


def test_call_takes_ten_messages(cloud: Cloud) -> None:
    take_all(cloud)
    batch = [message(f"m-{number}") for number in range(25)]
    answer = cloud.consumer(fails, **BACKOFF).handle({"Records": batch}, Context(cloud))
    assert answer == reported(*(f"m-{number}" for number in range(25)))
    assert [[entry["Id"] for entry in request["Entries"]] for request in cloud.requests(HIDE)] == [
        list("0123456789"),
        list("0123456789"),
        list("01234"),
    ]
    assert list(hidden(cloud)) == [f"m-{number}" for number in range(25)]


def test_thousand_messages_take_a_hundred_calls(cloud: Cloud) -> None:
    take_all(cloud)
    batch = [message(f"m-{number}") for number in range(1_000)]
    answer = cloud.consumer(fails, **BACKOFF).handle({"Records": batch}, Context(cloud))
    assert len(answer["batchItemFailures"]) == 1_000
    assert cloud.operations == [HIDE] * 100
    assert list(hidden(cloud)) == [f"m-{number}" for number in range(1_000)]


@pytest.mark.side_by_side
def test_calls_of_a_large_batch_are_made_at_the_same_time(cloud: Cloud) -> None:
    meeting = threading.Barrier(5)

    def answer(_request: dict[str, Any], _effect: Callable[[], Any]) -> Any:
        meeting.wait(PATIENCE_SECONDS)
        return {}

    cloud.on(HIDE, answers=answer)
    batch = [message(f"m-{number}") for number in range(1_000)]
    returning = cloud.consumer(fails, **BACKOFF).handle({"Records": batch}, Context(cloud))["batchItemFailures"]
    assert len(returning) == 1_000
    assert sorted(hidden(cloud)) == sorted(f"m-{number}" for number in range(1_000))


def test_client_that_gives_up_soon_is_used(cloud: Cloud) -> None:
    cloud.clients = replace(cloud.clients, sqs=None)
    cloud.on(COMMIT, raises=DOWN)
    assert cloud.deliver(message("m-1"), **BACKOFF) == reported("m-1")
    assert cloud.count(HIDE) == 1


def test_queue_takes_the_call(cloud: Cloud) -> None:
    sqs = cloud.real.sqs
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody='{"id":"o-1"}')
    (received,) = sqs.receive_message(QueueUrl=url)["Messages"]
    answers: list[Any] = []

    def answer(_request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        answers.append(effect())
        return answers[-1]

    cloud.on(COMMIT, raises=DOWN)
    cloud.on(HIDE, answers=answer)
    message_id = received["MessageId"]
    own = record(message_id, received["Body"]) | {"receiptHandle": received["ReceiptHandle"]}
    assert cloud.deliver(own, **BACKOFF | {"QUEUE_URL": url}) == reported(message_id)
    assert [each["Successful"] for each in answers] == [[{"Id": "0"}]]


# Where there is none


@pytest.mark.parametrize(("visibility", "cap", "calls"), [("30", "20", 0), ("30", "30", 0), ("30", "31", 1)])
def test_cap_at_or_below_the_queue_s_timeout_means_no_backoff(
    cloud: Cloud, visibility: str, cap: str, calls: int
) -> None:
    cloud.on(COMMIT, raises=DOWN)
    changes = BACKOFF | {"VISIBILITY_TIMEOUT_SECONDS": visibility, "BACKOFF_MAX_SECONDS": cap}
    assert cloud.deliver(message("m-1"), **changes) == reported("m-1")
    assert cloud.count(HIDE) == calls


def test_without_the_queue_s_url_there_is_no_backoff(cloud: Cloud) -> None:
    cloud.on(COMMIT, raises=DOWN)
    assert cloud.deliver(message("m-1"), **BACKOFF | {"QUEUE_URL": None}) == reported("m-1")
    assert cloud.count(HIDE) == 0


@pytest.mark.case("C55")
@pytest.mark.parametrize(("remaining_ms", "calls"), [(2_000, 1), (1_999, 0), (0, 0), (-1, 0)])
def test_call_starts_only_if_it_ends_in_time(cloud: Cloud, remaining_ms: int, calls: int) -> None:
    assert cloud.deliver(message("m-1"), context=Context(cloud, remaining_ms), **BACKOFF) == reported("m-1")
    assert cloud.operations == [HIDE] * calls


def test_calls_end_where_time_runs_out_among_them(cloud: Cloud) -> None:
    take_all(cloud)
    batch = [message(f"m-{number}") for number in range(1_000)]
    answer = cloud.deliver(*batch, context=Context(cloud, 5_000, {HIDE: 100}), **BACKOFF)
    assert len(answer["batchItemFailures"]) == 1_000
    # Begun with 5,000 ms left, 4,900 … 2,000.
    assert cloud.operations == [HIDE] * 31


# What fails changes nothing else


SQS_SAYS: dict[str, dict[str, Any]] = {
    "one entry": {"answers": {"Successful": [{"Id": "0"}], "Failed": [{"Id": "1", "Code": "ReceiptHandleIsInvalid"}]}},
    "two entries alike": {
        "answers": {"Failed": [{"Id": "0", "Code": "InternalError"}, {"Id": "1", "Code": "InternalError"}]},
    },
    "entry without a code": {"answers": {"Failed": [{"Id": "0"}]}},
    "denied": {"raises": client_error("AccessDenied", HIDE)},
    "no such queue": {"raises": client_error("AWS.SimpleQueueService.NonExistentQueue", HIDE)},
    "no answer": {"raises": ConnectTimeoutError(endpoint_url="https://secret.example")},
    "unreadable answer": {"raises": ResponseParserError("the text of the answer, which may quote data")},
    "fault of our own": {"raises": TypeError("the text of the error, which may quote data")},
}
CODES = {
    "one entry": "ReceiptHandleIsInvalid",
    "two entries alike": "InternalError",
    "entry without a code": "Unknown",
    "denied": "AccessDenied",
    "no such queue": "AWS.SimpleQueueService.NonExistentQueue",
    "no answer": "ConnectTimeoutError",
    "unreadable answer": "ResponseParserError",
}


def everything(records: Sequence[logging.LogRecord]) -> str:
    plain = logging.Formatter()
    return "\n".join(f"{plain.format(entry)} {entry.__dict__}" for entry in records)


def played(cloud: Cloud, metrics: Callable[[], dict[str, Any]]) -> tuple[Any, dict[str, Any], dict[str, str]]:
    """A batch of which two messages fail: the answer, the metrics and the ledger."""
    cloud.on(COMMIT, raises=DOWN, calls=[1, 2])
    batch = [message("m-1"), message("m-2", receive_count=3), message("m-3"), message("m-4", "poison")]
    answer = cloud.deliver(*batch, **BACKOFF)
    return answer, metrics(), cloud.statuses()


@pytest.mark.alone
@pytest.mark.parametrize("failure", SQS_SAYS)
def test_failing_call_changes_neither_answer_nor_metrics_nor_verdicts(
    new_cloud: Callable[..., Cloud],
    metrics: Callable[[], dict[str, Any]],
    logged: Callable[[], list[tuple[str, str, str, str]]],
    caplog: pytest.LogCaptureFixture,
    failure: str,
) -> None:
    usual = played(new_cloud(), metrics)
    verdicts = logged()
    assert usual[0] == reported("m-1", "m-2")
    assert (usual[1]["Retries"], usual[1]["Applied"], usual[1]["Misconfigured"]) == (2, 1, 0)
    caplog.clear()
    cloud = new_cloud()
    cloud.on(HIDE, **SQS_SAYS[failure])
    assert played(cloud, metrics) == usual
    assert logged() == verdicts
    assert cloud.count(HIDE) == 1


@pytest.mark.case("C76")
@pytest.mark.parametrize("failure", CODES)
def test_failing_call_is_one_line_that_holds_no_data(
    cloud: Cloud, caplog: pytest.LogCaptureFixture, failure: str
) -> None:
    cloud.on(HIDE, **SQS_SAYS[failure])
    with caplog.at_level(logging.DEBUG):
        cloud.consumer(fails, **BACKOFF).handle({"Records": [message("m-1"), message("m-2")]}, Context(cloud))
    lines = [entry for entry in caplog.records if entry.getMessage().startswith("no backoff")]
    assert [(line.levelname, line.getMessage()) for line in lines] == [("WARNING", f"no backoff: {CODES[failure]}")]
    assert lines[0].__dict__["error"] == CODES[failure]
    text = everything(caplog.records)
    assert "handle of" not in text
    assert "quote data" not in text
    assert "secret.example" not in text


@pytest.mark.case("C76")
def test_fault_of_our_own_is_one_line_that_holds_no_data(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.on(COMMIT, raises=DOWN)
    cloud.on(HIDE, **SQS_SAYS["fault of our own"])
    with caplog.at_level(logging.DEBUG):
        assert cloud.deliver(message("m-1"), **BACKOFF) == reported("m-1")
    (line,) = [entry for entry in caplog.records if entry.getMessage().startswith("fault: TypeError at ")]
    assert line.levelname == "ERROR"
    assert "handle of" not in everything(caplog.records)
    assert "quote data" not in everything(caplog.records)


@pytest.mark.case("C76")
def test_handles_and_bodies_are_not_logged_where_all_goes_well(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.on(COMMIT, raises=DOWN)
    cloud.on(HIDE, answers={"Successful": [{"Id": "0"}]})
    with caplog.at_level(logging.DEBUG):
        cloud.deliver(message("m-1", {"id": "o-1", "card": "4111"}), **BACKOFF)
    assert cloud.count(HIDE) == 1
    assert "handle of" not in everything(caplog.records)
    assert "4111" not in everything(caplog.records)
    assert "no backoff" not in everything(caplog.records)


def test_each_code_is_told_once_for_all_calls_of_a_part(cloud: Cloud, caplog: pytest.LogCaptureFixture) -> None:
    cloud.on(HIDE, answers={"Failed": [{"Id": "3", "Code": "ReceiptHandleIsInvalid"}]}, calls=[1, 2])
    cloud.on(HIDE, answers={"Failed": [{"Id": "3", "Code": "InternalError"}]})
    batch = [message(f"m-{number}") for number in range(45)]
    cloud.consumer(fails, **BACKOFF).handle({"Records": batch}, Context(cloud))
    lines = [entry.getMessage() for entry in caplog.records if entry.getMessage().startswith("no backoff")]
    assert lines == ["no backoff: ReceiptHandleIsInvalid", "no backoff: InternalError"]
    assert cloud.count(HIDE) == 5


@pytest.mark.parametrize("failure", ["denied", "no such queue", "no answer", "unreadable answer"])
def test_call_that_failed_is_the_last_one_of_its_invocation(cloud: Cloud, failure: str) -> None:
    """I8: of the next one nothing is known."""
    cloud.on(HIDE, **SQS_SAYS[failure])
    consumer = cloud.consumer(fails, **BACKOFF)
    batch = [message(f"m-{number}") for number in range(120)]
    for calls in (1, 2):
        assert len(consumer.handle({"Records": batch}, Context(cloud))["batchItemFailures"]) == 120
        assert cloud.count(HIDE) == calls


def test_entries_that_failed_are_no_reason_to_make_no_further_calls(cloud: Cloud) -> None:
    cloud.on(HIDE, answers={"Failed": [{"Id": "0", "Code": "ReceiptHandleIsInvalid"}]})
    cloud.consumer(fails, **BACKOFF).handle({"Records": [message(f"m-{n}") for n in range(120)]}, Context(cloud))
    assert cloud.count(HIDE) == 12


def test_call_that_fails_is_not_made_again(cloud: Cloud, pauses: list[int]) -> None:
    cloud.on(HIDE, raises=client_error("RequestThrottled", HIDE))
    cloud.consumer(fails, **BACKOFF).handle({"Records": [message("m-1")]}, Context(cloud))
    assert (cloud.count(HIDE), pauses) == (1, [])


def test_call_that_meets_a_fault_does_not_hold_up_the_next_part(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_module, "PART", 2)
    cloud.on(COMMIT, raises=DOWN, calls=range(1, 4))
    cloud.on(HIDE, raises=TypeError("of our own"), calls=[1])
    batch = [message(f"m-{number}") for number in range(1, 5)]
    assert cloud.deliver(*batch, **BACKOFF) == reported("m-1", "m-2")
    assert set(cloud.statuses().values()) == {"sent"}


@pytest.mark.parametrize("error", [ConnectTimeoutError(endpoint_url="https://sqs.example"), None])
def test_queue_that_is_out_of_reach_does_not_take_the_time_of_what_follows(error: Exception | None) -> None:
    """As in a VPC without a way to SQS, where each call takes its whole timeout: 20 parts, each with one that fails."""
    world = IndexedWorld()

    def interfere(operation: str, _request: Request, effect: Effect) -> Any:
        if operation == HIDE and error is not None:
            raise error
        return effect()

    def plan(planner: Planner, event: Event) -> Plan:
        return fails(event) if event.id.endswith("00") or event.id.endswith("50") else planner(event)

    world.interfere = interfere
    batch = [message(f"m-{number:03}") for number in range(1_000)]
    clock = Clock(world, 20_000, {HIDE: 1_500 if error else 0})
    answer = world.consumer(plan, **BACKOFF).handle({"Records": batch}, clock)
    assert answer == reported(*(f"m-{number:03}" for number in range(0, 1_000, 50)))
    assert list(world.statuses().values()) == ["sent"] * 980


def test_messages_are_hidden_where_the_invocation_fails_as_a_whole(cloud: Cloud, drawn: Drawn) -> None:
    cloud.on(COMMIT, raises=client_error("AccessDeniedException"))
    with pytest.raises(Misconfigured):
        cloud.deliver(message("m-1"), message("m-2"), **BACKOFF)
    assert hidden(cloud) == {"m-1": 31, "m-2": 32}


def test_messages_are_hidden_before_a_process_that_dies_later_in_the_batch(
    cloud: Cloud, drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Part by part, so that a large batch that runs out of time has hidden what it had seen."""
    monkeypatch.setattr(consumer_module, "PART", 1)
    cloud.on(COMMIT, raises=DOWN, calls=[1])
    assert cloud.deliver(message("m-1"), message("m-2"), **BACKOFF) == reported("m-1")
    assert cloud.operations.index(HIDE) < cloud.operations.index(PUBLISH)


def test_the_time_in_work_is_a_part_of_the_time_hidden(cloud: Cloud, drawn: Drawn) -> None:
    """What the queue counts from the call, the plan's rule on retention counts from the receive."""
    take_all(cloud)
    cloud.on(PUBLISH, raises=DOWN)
    cloud.deliver(message("m-1"), context=Context(cloud, costs_ms={PUBLISH: 7_900}), **BACKOFF)
    assert drawn == [(30, 60)]
    assert hidden(cloud) == {"m-1": 31 - 7}


@pytest.mark.parametrize(
    ("age_seconds", "receive_count", "seconds"),
    [
        pytest.param(0, 1, 60, id="time enough: as drawn"),
        pytest.param(600, 1, 60, id="five times 60 of 300 seconds left"),
        pytest.param(700, 1, 40, id="five times 40 of 200"),
        pytest.param(700, 4, 60, id="two times 60 of 200"),
        pytest.param(880, 1, 30, id="never less than the queue's own timeout"),
        pytest.param(2_000, 1, 30, id="past its retention by our clock"),
    ],
)
def test_a_message_is_hidden_for_so_long_only_that_it_is_dead_lettered_before_it_is_lost(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch, age_seconds: int, receive_count: int, seconds: int
) -> None:
    monkeypatch.setattr(backoff_module, "hidden_seconds", lambda receives, backoff: 60)
    take_all(cloud)
    cloud.on(PUBLISH, raises=DOWN)
    one = message("m-1", receive_count=receive_count)
    one["attributes"]["SentTimestamp"] = str(NOW_MS - age_seconds * 1000)
    cloud.deliver(one, **BACKOFF, RETENTION_SECONDS="900", MAX_RECEIVE_COUNT="5")
    assert hidden(cloud) == {"m-1": seconds}
