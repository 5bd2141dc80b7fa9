"""Calls that do not depend on each other are made at the same time, five at most, and all of them have an end."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from idempotent_consumer import side_by_side
from idempotent_consumer.answer import Outcome, Verdict
from idempotent_consumer.aws import Clients
from idempotent_consumer.calls import Budget
from idempotent_consumer.ledger import Ledger
from idempotent_consumer.notification import RenderedNotification
from idempotent_consumer.outbox import Outbox
from idempotent_consumer.side_by_side import SideBySide
from tests.handler.support import LEDGER, MARK, NOW, PUBLISH, TTL, Cloud, Context, client_error

pytestmark = pytest.mark.side_by_side

# For what a condition takes to come true. A test that passes never waits so long.
PATIENCE_SECONDS = 30

RETRY = Verdict(Outcome.RETRY, "unavailable", "a call")


def await_event(event: threading.Event) -> None:
    assert event.wait(PATIENCE_SECONDS)


def result(chunk: str) -> dict[str, Verdict]:
    return {chunk: Verdict(Outcome.RETRY, "unavailable", chunk)}


def test_the_results_are_merged() -> None:
    def call(chunk: list[str]) -> dict[str, Verdict]:
        return {key: RETRY for key in chunk if key != "b-1"}

    assert SideBySide().call(call, [["a-1"], ["b-1"], ["c-1", "c-2"]]) == {"a-1": RETRY, "c-1": RETRY, "c-2": RETRY}


def test_each_result_is_that_of_its_chunk() -> None:
    assert SideBySide().call(result, list("abcdefgh")) == {
        key: Verdict(Outcome.RETRY, "unavailable", key) for key in "abcdefgh"
    }


@pytest.mark.parametrize("in_order", [False, True])
def test_nothing_to_call_is_no_call(in_order: bool) -> None:
    assert SideBySide().call(result, [], in_order=in_order) == {}


def test_one_chunk_makes_no_thread() -> None:
    threads: list[threading.Thread] = []

    def call(chunk: str) -> dict[str, Verdict]:
        threads.append(threading.current_thread())
        return result(chunk)

    assert list(SideBySide().call(call, ["a"])) == ["a"]
    assert threads == [threading.current_thread()]


def test_calls_are_made_at_the_same_time() -> None:
    meeting = threading.Barrier(2)

    def call(chunk: str) -> dict[str, Verdict]:
        meeting.wait(PATIENCE_SECONDS)
        return result(chunk)

    assert list(SideBySide().call(call, ["a", "b"])) == ["a", "b"]


def test_results_stand_in_the_order_of_their_chunks() -> None:
    second_has_ended = threading.Event()

    def call(chunk: str) -> dict[str, Verdict]:
        if chunk == "a":
            await_event(second_has_ended)
        else:
            second_has_ended.set()
        return result(chunk)

    assert list(SideBySide().call(call, ["a", "b"])) == ["a", "b"]


def test_in_order_each_call_ends_before_the_next_begins() -> None:
    steps: list[tuple[str, threading.Thread]] = []

    def call(chunk: str) -> dict[str, Verdict]:
        steps.append((f"{chunk} begins", threading.current_thread()))
        steps.append((f"{chunk} ends", threading.current_thread()))
        return result(chunk)

    assert list(SideBySide().call(call, ["b", "a", "c"], in_order=True)) == ["b", "a", "c"]
    assert [step for step, _ in steps] == ["b begins", "b ends", "a begins", "a ends", "c begins", "c ends"]
    assert {thread for _, thread in steps} == {threading.current_thread()}


@pytest.mark.parametrize(("chunks", "threads"), [(12, 5), (5, 5), (3, 3)])
def test_at_most_five_calls_run_at_the_same_time(chunks: int, threads: int) -> None:
    used: set[threading.Thread] = set()
    running: list[int] = []
    lock = threading.Lock()
    meeting = threading.Barrier(threads)  # so that no thread is free for a second chunk before

    def call(chunk: str) -> dict[str, Verdict]:
        used.add(threading.current_thread())
        with lock:
            running.append(running[-1] + 1 if running else 1)
            is_early = len(running) <= threads
        if is_early:
            meeting.wait(PATIENCE_SECONDS)
        with lock:
            running.append(running[-1] - 1)
        return result(chunk)

    assert len(SideBySide().call(call, [f"c-{number}" for number in range(chunks)])) == chunks
    assert max(running) <= threads
    assert len(used) == threads
    assert threading.current_thread() not in used


def test_five_calls_do_run_at_the_same_time() -> None:
    meeting = threading.Barrier(5)

    def call(chunk: str) -> dict[str, Verdict]:
        meeting.wait(PATIENCE_SECONDS)
        return result(chunk)

    assert len(SideBySide().call(call, [f"c-{number}" for number in range(10)])) == 10


def test_each_call_has_a_connection_of_its_own(clients: Clients) -> None:
    """A call without one would make a new connection, and close it."""
    assert side_by_side.CALLS == 5
    assert [client.meta.config.max_pool_connections for client in (clients.dynamodb, clients.sns)] == [10, 10]


def test_threads_are_kept_for_the_next_calls() -> None:
    calls = SideBySide()
    used: set[threading.Thread] = set()

    def call(chunk: str) -> dict[str, Verdict]:
        used.add(threading.current_thread())
        return result(chunk)

    for _ in range(20):
        calls.call(call, list("abcdefgh"))
    assert len(used) <= 5
    assert all(thread.is_alive() for thread in used)


def test_where_no_thread_is_to_be_had_the_calls_are_made_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The executor has taken a call already when it fails to start a thread for it; none may begin afterwards."""
    start = threading.Thread.start
    started: list[threading.Thread] = []

    def scarce(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    shut_down = ThreadPoolExecutor.shutdown
    is_given_up = threading.Event()

    def give_up(threads: ThreadPoolExecutor, **how: bool) -> None:
        shut_down(threads, wait=False, cancel_futures=how["cancel_futures"])
        is_given_up.set()
        shut_down(threads, wait=how["wait"])

    monkeypatch.setattr(ThreadPoolExecutor, "shutdown", give_up)
    called: list[str] = []

    def call(chunk: str) -> dict[str, Verdict]:
        await_event(is_given_up)  # so that no thread is free for what was queued before
        called.append(chunk)
        return result(chunk)

    calls = SideBySide()
    assert sorted(calls.call(call, list("abcdef"))) == list("abcdef")
    assert sorted(called) == list("abcdef")
    assert not any(thread.is_alive() for thread in started)
    started.clear()
    monkeypatch.setattr(threading.Thread, "start", start)
    assert sorted(calls.call(result, list("abc"))) == list("abc")


class TestCallThatRaises:
    @pytest.mark.parametrize("failing", ["a", "b"])
    def test_is_raised_once_the_others_have_ended(self, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
        is_waited_for = threading.Event()
        ended: list[str] = []

        def wait(others: Any) -> Any:
            is_waited_for.set()
            return futures_wait(others)

        futures_wait = concurrent.futures.wait
        monkeypatch.setattr(concurrent.futures, "wait", wait)

        def call(chunk: str) -> dict[str, Verdict]:
            if chunk == failing:
                raise RuntimeError(chunk)
            await_event(is_waited_for)
            ended.append(chunk)
            return result(chunk)

        with pytest.raises(RuntimeError, match=failing):
            SideBySide().call(call, ["a", "b", "c"])
        assert sorted([*ended, failing]) == ["a", "b", "c"]

    def test_is_raised_whichever_it_is(self) -> None:
        def call(chunk: str) -> dict[str, Verdict]:
            if chunk == "c":
                raise RuntimeError(chunk)
            return result(chunk)

        with pytest.raises(RuntimeError, match="c"):
            SideBySide().call(call, list("abcdefgh"))

    @pytest.mark.parametrize(("chunks", "in_order"), [(["a"], False), (["a", "b"], True)])
    def test_is_raised_where_there_are_no_threads(self, chunks: list[str], in_order: bool) -> None:
        called: list[str] = []

        def call(chunk: str) -> dict[str, Verdict]:
            called.append(chunk)
            raise RuntimeError(chunk)

        with pytest.raises(RuntimeError, match="a"):
            SideBySide().call(call, chunks, in_order=in_order)
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
