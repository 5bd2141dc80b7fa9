"""Calls that do not depend on each other are made at the same time, five at most, and no thread outlives them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from idempotent_consumer import side_by_side
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import Budget, Clients
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.side_by_side import call_side_by_side
from tests.handler.support import LEDGER, MARK, NOW, PUBLISH, TTL, Cloud, Context, client_error

pytestmark = pytest.mark.side_by_side

# For what a condition takes to come true. A test that passes never waits so long.
PATIENCE_SECONDS = 30

RETRY = Verdict(Outcome.RETRY, "unavailable", "a call")


class Chunks(list[str]):
    """The chunks, and whether all of them have been handed out."""

    def __init__(self, *names: str) -> None:
        super().__init__(names)
        self.are_handed_out = threading.Event()

    def __iter__(self) -> Iterator[str]:
        yield from super().__iter__()
        self.are_handed_out.set()


def await_event(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS)


def result(chunk: str) -> dict[str, Verdict]:
    return {chunk: Verdict(Outcome.RETRY, "unavailable", chunk)}


def test_the_results_are_merged() -> None:
    def call(chunk: list[str]) -> dict[str, Verdict]:
        return {key: RETRY for key in chunk if key != "b-1"}

    assert call_side_by_side(call, [["a-1"], ["b-1"], ["c-1", "c-2"]]) == {"a-1": RETRY, "c-1": RETRY, "c-2": RETRY}


def test_each_result_is_that_of_its_chunk() -> None:
    assert call_side_by_side(result, list("abcdefgh")) == {
        key: Verdict(Outcome.RETRY, "unavailable", key) for key in "abcdefgh"
    }


@pytest.mark.parametrize("in_order", [False, True])
def test_nothing_to_call_is_no_call(in_order: bool) -> None:
    assert call_side_by_side(result, [], in_order=in_order) == {}


def test_one_chunk_makes_no_thread() -> None:
    threads: list[threading.Thread] = []

    def call(chunk: str) -> dict[str, Verdict]:
        threads.append(threading.current_thread())
        return result(chunk)

    assert list(call_side_by_side(call, ["a"])) == ["a"]
    assert threads == [threading.current_thread()]


def test_calls_are_made_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def call(chunk: str) -> dict[str, Verdict]:
        meeting.wait(PATIENCE_SECONDS)
        return result(chunk)

    assert list(call_side_by_side(call, ["a", "b"])) == ["a", "b"]


def test_results_stand_in_the_order_of_their_chunks() -> None:
    second_has_ended = threading.Event()

    def call(chunk: str) -> dict[str, Verdict]:
        if chunk == "a":
            await_event(second_has_ended)
        else:
            second_has_ended.set()
        return result(chunk)

    assert list(call_side_by_side(call, ["a", "b"])) == ["a", "b"]


def test_in_order_each_call_ends_before_the_next_begins() -> None:
    steps: list[tuple[str, threading.Thread]] = []

    def call(chunk: str) -> dict[str, Verdict]:
        steps.append((f"{chunk} begins", threading.current_thread()))
        steps.append((f"{chunk} ends", threading.current_thread()))
        return result(chunk)

    assert list(call_side_by_side(call, ["b", "a", "c"], in_order=True)) == ["b", "a", "c"]
    assert [step for step, _ in steps] == ["b begins", "b ends", "a begins", "a ends", "c begins", "c ends"]
    assert {thread for _, thread in steps} == {threading.current_thread()}


@pytest.mark.parametrize(("chunks", "threads"), [(12, 5), (5, 5), (3, 3)])
def test_at_most_five_calls_run_at_the_same_time(chunks: int, threads: int) -> None:
    waiting = Chunks(*(f"c-{number}" for number in range(chunks)))
    used: set[threading.Thread] = set()

    def call(chunk: str) -> dict[str, Verdict]:
        used.add(threading.current_thread())
        await_event(waiting.are_handed_out)  # so that no thread is free for a second chunk before
        return result(chunk)

    assert len(call_side_by_side(call, waiting)) == chunks
    assert len(used) <= threads
    assert threading.current_thread() not in used


def test_five_calls_do_run_at_the_same_time() -> None:
    meeting = threading.Barrier(5)

    def call(chunk: str) -> dict[str, Verdict]:
        meeting.wait(PATIENCE_SECONDS)
        return result(chunk)

    assert len(call_side_by_side(call, [f"c-{number}" for number in range(10)])) == 10


def test_each_call_has_a_connection_of_its_own(clients: Clients) -> None:
    """A call without one would make a new connection, and close it."""
    assert side_by_side.THREADS == 5
    assert [client.meta.config.max_pool_connections for client in (clients.dynamodb, clients.sns)] == [10, 10]


def test_no_thread_is_left_afterwards() -> None:
    meeting = threading.Barrier(3)
    threads: set[threading.Thread] = set()

    def call(chunk: str) -> dict[str, Verdict]:
        threads.add(threading.current_thread())
        meeting.wait(PATIENCE_SECONDS)
        return result(chunk)

    call_side_by_side(call, ["a", "b", "c"])
    assert len(threads) == 3
    assert not any(thread.is_alive() for thread in threads)
    assert threads.isdisjoint(threading.enumerate())


class TestCallThatRaises:
    def test_is_raised_once_the_others_have_ended(self) -> None:
        has_begun = {"fails": threading.Event(), "goes on": threading.Event()}
        threads: dict[str, threading.Thread] = {}
        ended: list[str] = []

        def call(chunk: str) -> dict[str, Verdict]:
            threads[chunk] = threading.current_thread()
            has_begun[chunk].set()
            if chunk == "fails":
                await_event(has_begun["goes on"])
                raise RuntimeError(chunk)
            await_event(has_begun["fails"])
            threads["fails"].join(PATIENCE_SECONDS)  # it ends once the error is on its way and no call is to come
            ended.append(chunk)
            return result(chunk)

        with pytest.raises(RuntimeError, match="fails"):
            call_side_by_side(call, ["fails", "goes on"])
        assert ended == ["goes on"]
        assert not any(thread.is_alive() for thread in threads.values())

    def test_is_raised_whichever_it_is(self) -> None:
        def call(chunk: str) -> dict[str, Verdict]:
            if chunk == "c":
                raise RuntimeError(chunk)
            return result(chunk)

        with pytest.raises(RuntimeError, match="c"):
            call_side_by_side(call, list("abcdefgh"))

    @pytest.mark.parametrize(("chunks", "in_order"), [(["a"], False), (["a", "b"], True)])
    def test_is_raised_where_there_are_no_threads(self, chunks: list[str], in_order: bool) -> None:
        called: list[str] = []

        def call(chunk: str) -> dict[str, Verdict]:
            called.append(chunk)
            raise RuntimeError(chunk)

        with pytest.raises(RuntimeError, match="a"):
            call_side_by_side(call, chunks, in_order=in_order)
        assert called == ["a"]


# --- who makes calls side by side


def budget(cloud: Cloud) -> Budget:
    return Budget(Context(cloud))


def notifications(number: int) -> dict[str, RenderedNotification]:
    return {
        f"o-{n}": RenderedNotification("{}", {"event_id": ("String", f"o-{n}")}, "g", f"d-{n}") for n in range(number)
    }


def mark(cloud: Cloud, number: int) -> dict[str, Verdict]:
    for n in range(number):
        cloud.store(LEDGER, {"event_id": {"S": f"o-{n}"}, "status": {"S": "pending"}})
    message_ids = {f"o-{n}": f"m-{n}" for n in range(number)}
    sent = {"status": {"S": "sent"}, "sent_at": NOW, "ttl": TTL}
    return Ledger(cloud.clients.dynamodb, LEDGER).mark_sent(message_ids, sent, budget(cloud))


def test_sixty_events_are_marked_by_three_calls_at_the_same_time(cloud: Cloud) -> None:
    meeting = threading.Barrier(3)
    cloud.on(MARK, runs=lambda: meeting.wait(PATIENCE_SECONDS))
    assert mark(cloud, 60) == {}
    assert sorted(len(request["Statements"]) for request in cloud.requests(MARK)) == [10, 25, 25]
    assert cloud.statuses() == {f"o-{n}": "sent" for n in range(60)}


def test_a_marking_call_that_fails_is_a_verdict_on_its_own_events(cloud: Cloud) -> None:
    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        if {"S": "o-30"} in [statement["Parameters"][4] for statement in request["Statements"]]:
            raise client_error("InternalServerError", MARK)
        return effect()

    cloud.on(MARK, answers=answer)
    unavailable = Verdict(Outcome.RETRY, "unavailable", "BatchExecuteStatement: InternalServerError")
    assert mark(cloud, 60) == {f"o-{n}": unavailable for n in range(25, 50)}
    assert cloud.statuses() == {f"o-{n}": "pending" if 25 <= n < 50 else "sent" for n in range(60)}


def test_a_throttled_call_is_made_again_beside_the_others(cloud: Cloud, pauses: list[int]) -> None:
    refused: list[bool] = []
    lock = threading.Lock()

    def answer(request: dict[str, Any], effect: Callable[[], Any]) -> Any:
        with lock:
            is_first = {"S": "o-0"} in [each["Parameters"][4] for each in request["Statements"]] and not refused
            refused.extend([True] * is_first)
        if is_first:
            raise client_error("ThrottlingException", MARK)
        return effect()

    cloud.on(MARK, answers=answer)
    assert mark(cloud, 60) == {}
    assert cloud.count(MARK) == 4
    assert pauses == [0]


def test_fifty_notifications_are_published_by_five_calls_at_the_same_time(cloud: Cloud) -> None:
    meeting = threading.Barrier(5)
    cloud.on(PUBLISH, runs=lambda: meeting.wait(PATIENCE_SECONDS))
    assert Outbox(cloud.clients.sns, cloud.topic_arn).publish(notifications(50), budget(cloud)) == {}
    assert [len(request["PublishBatchRequestEntries"]) for request in cloud.requests(PUBLISH)] == [10] * 5
    assert sorted(cloud.notified()) == sorted(f"o-{n}" for n in range(50))


def test_a_fifo_topic_is_published_to_in_order(new_cloud: Callable[..., Cloud]) -> None:
    cloud = new_cloud(fifo_topic=True)
    threads: list[threading.Thread] = []
    cloud.on(PUBLISH, runs=lambda: threads.append(threading.current_thread()))
    assert Outbox(cloud.clients.sns, cloud.topic_arn).publish(notifications(30), budget(cloud)) == {}
    assert cloud.history == [("published", f"o-{n}") for n in range(30)]
    assert threads == [threading.current_thread()] * 3


def test_a_single_call_makes_no_pool(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        pytest.fail("a pool for one call")

    monkeypatch.setattr(ThreadPoolExecutor, "__init__", refuse)
    assert mark(cloud, 25) == {}
    assert Outbox(cloud.clients.sns, cloud.topic_arn).publish(notifications(10), budget(cloud)) == {}
    assert cloud.operations == [MARK, PUBLISH]
