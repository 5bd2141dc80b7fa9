"""FIFO in transactions of many events: each message group keeps its order to the letter, and waits for no other.

Messages are named after their group: a1, a2, … are of group a, and so is the event in each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError

from idempotent_consumer.declarative import declarative_planner
from idempotent_consumer.event import Event
from idempotent_consumer.plan import Plan
from idempotent_consumer.settings import Settings
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
    PUT,
    READ,
    Cloud,
    Context,
    Killed,
    cancelled,
    client_error,
    events_of,
    record,
    reported,
)

Record = dict[str, Any]
Request = dict[str, Any]
Effect = Callable[[], Any]

NEWER: dict[str, Any] = {"EVENT_WRITE_MODE": "newer", "EVENT_VERSION": "version"}
INTERNAL = client_error("InternalServerError")


def message(name: str, *, receive_count: int = 1, **more: Any) -> Record:
    return record(name, {"id": name, **more}, group=name[0], receive_count=receive_count)


def batch(names: str, **more: Any) -> list[Record]:
    return [message(name, **more) for name in names.split()]


def poison(name: str) -> Record:
    return record(name, f"poison {name}", group=name[0])


def occupy(cloud: Cloud, name: str) -> None:
    """Its business row is somebody else's: a conflict that the transaction finds."""
    cloud.store(BUSINESS, {"id": {"S": name}, "owner": {"S": "somebody else"}})


def supersede(cloud: Cloud, name: str) -> None:
    cloud.store(BUSINESS, {"id": {"S": name}, "event_id": {"S": "before"}, "event_version": {"N": "9"}})


def effects(cloud: Cloud, group: str) -> list[str]:
    """What took effect for one group, in order: c for committed, s for superseded, d for dead-lettered."""
    letters = {"committed": "c", "superseded": "s", "dead-lettered": "d"}
    named = [(what, which.removeprefix("poison ").removeprefix('{"id":"')) for what, which in cloud.history]
    return [f"{letters[what]} {which[:2]}" for what, which in named if what in letters and which[0] == group]


def whenever(cloud: Cloud, name: str, error: Exception) -> None:
    """The call fails whenever this event is in the transaction."""

    def answer(request: Request, effect: Effect) -> Any:
        if name in events_of(request):
            raise error
        return effect()

    cloud.on(COMMIT, answers=answer)


def refuse(cloud: Cloud, name: str, code: str = "TransactionConflict", calls: range | None = None) -> None:
    """Each transaction with this event is cancelled, and its ledger action is named."""

    def answer(request: Request, effect: Effect) -> Any:
        events = events_of(request)
        if name not in events:
            return effect()
        raise cancelled(*(reason for event in events for reason in (code if event == name else "None", "None")))

    cloud.on(COMMIT, answers=answer, calls=calls)


def test_events_of_several_groups_share_a_transaction(fifo_cloud: Cloud) -> None:
    assert fifo_cloud.deliver(*batch("a1 b1 a2 c1 a3 b2")) == NOTHING_FAILED
    assert fifo_cloud.operations == [COMMIT, PUBLISH, MARK]
    assert fifo_cloud.transactions == [["a1", "b1", "a2", "c1", "a3", "b2"]]


def test_ten_redelivered_events_of_several_groups_cost_one_read(fifo_cloud: Cloud) -> None:
    fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3 b3 a4 b4 a5 b5"))
    fifo_cloud.forget()
    assert fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3 b3 a4 b4 a5 b5", receive_count=2)) == NOTHING_FAILED
    assert fifo_cloud.operations == [READ]


# What can never succeed


class TestPoison:
    @pytest.mark.parametrize(
        ("place", "calls", "tried"),
        [
            (0, [BURY, COMMIT, PUBLISH, MARK], [["a2", "b1", "a3", "b2"]]),
            (1, [COMMIT, BURY, COMMIT, PUBLISH, MARK], [["a1", "b1", "b2"], ["a3"]]),
            (2, [COMMIT, BURY, PUBLISH, MARK], [["a1", "a2", "b1", "b2"]]),
        ],
    )
    def test_is_dead_lettered_in_its_turn(
        self, fifo_cloud: Cloud, place: int, calls: list[str], tried: list[list[str]]
    ) -> None:
        names = ["a1", "a2", "a3"]
        first, second, third = (poison(name) if index == place else message(name) for index, name in enumerate(names))
        assert fifo_cloud.deliver(first, second, message("b1"), third, message("b2")) == NOTHING_FAILED
        assert fifo_cloud.operations == calls
        assert fifo_cloud.transactions == tried
        assert effects(fifo_cloud, "a") == [f"{'d' if index == place else 'c'} a{index + 1}" for index in range(3)]

    def test_in_two_groups_is_dead_lettered_at_once(self, fifo_cloud: Cloud) -> None:
        answer = fifo_cloud.deliver(
            *batch("a1 b1"), poison("a2"), poison("b2"), *batch("a3 b3 c1"), poison("a4"), *batch("a5 b4")
        )
        assert answer == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, BURY, BURY, COMMIT, BURY, COMMIT, PUBLISH, MARK]
        assert fifo_cloud.transactions == [["a1", "b1", "c1"], ["a3", "b3", "b4"], ["a5"]]
        assert effects(fifo_cloud, "a") == ["c a1", "d a2", "c a3", "d a4", "c a5"]
        assert effects(fifo_cloud, "b") == ["c b1", "d b2", "c b3", "c b4"]

    @pytest.mark.parametrize(("place", "left"), [(0, "a1 a2 a3"), (1, "a2 a3"), (2, "a3")])
    def test_that_cannot_be_dead_lettered_blocks_its_group_and_no_other(
        self, fifo_cloud: Cloud, place: int, left: str
    ) -> None:
        fifo_cloud.on(BURY, raises=client_error("InternalError", BURY))
        first, second, third = (
            poison(f"a{index + 1}") if index == place else message(f"a{index + 1}") for index in range(3)
        )
        answer = fifo_cloud.deliver(message("b1"), first, second, message("b2"), third)
        assert answer == reported(*left.split())
        assert effects(fifo_cloud, "a") == [f"c a{index + 1}" for index in range(place)]
        assert fifo_cloud.count(BURY) == 1
        assert set(fifo_cloud.statuses().values()) == {"sent"}


class TestConflictThatTheTransactionFinds:
    @pytest.mark.parametrize(
        ("name", "calls", "tried"),
        [
            ("a1", [COMMIT, READ, BURY, COMMIT, PUBLISH, MARK], [["b1", "a2", "a3", "b2"]]),
            ("a2", [COMMIT, READ, COMMIT, BURY, COMMIT, PUBLISH, MARK], [["a1", "b1", "b2"], ["a3"]]),
            ("a3", [COMMIT, READ, COMMIT, BURY, PUBLISH, MARK], [["a1", "b1", "a2", "b2"]]),
        ],
    )
    def test_is_dead_lettered_before_the_next_event_of_its_group_is_committed(
        self, fifo_cloud: Cloud, name: str, calls: list[str], tried: list[list[str]]
    ) -> None:
        occupy(fifo_cloud, name)
        assert fifo_cloud.deliver(*batch("a1 b1 a2 a3 b2")) == NOTHING_FAILED
        assert fifo_cloud.operations == calls
        assert fifo_cloud.transactions == [["a1", "b1", "a2", "a3", "b2"], *tried]
        assert effects(fifo_cloud, "a") == [f"{'d' if each == name else 'c'} {each}" for each in ("a1", "a2", "a3")]
        assert fifo_cloud.reasons() == ["row-exists"]

    def test_id_that_is_used_again_is_dead_lettered_in_its_turn(self, fifo_cloud: Cloud) -> None:
        fifo_cloud.deliver(message("a2"))
        fifo_cloud.forget()
        answer = fifo_cloud.deliver(message("a1"), message("a2", amount=99), message("a3"), message("b1"))
        assert answer == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, READ, COMMIT, BURY, READ, COMMIT, PUBLISH, MARK]
        assert fifo_cloud.reads == [["a1", "b1"], ["a3"]]
        assert effects(fifo_cloud, "a") == ["c a1", "d a2", "c a3"]

    def test_several_in_one_group_are_dead_lettered_each_in_its_turn(self, fifo_cloud: Cloud) -> None:
        occupy(fifo_cloud, "a2")
        occupy(fifo_cloud, "a4")
        assert fifo_cloud.deliver(*batch("a1 a2 a3 a4 a5 b1")) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "d a2", "c a3", "d a4", "c a5"]
        assert fifo_cloud.transactions[1:] == [["a1", "b1"], ["a3"], ["a5"]]

    def test_that_cannot_be_dead_lettered_reports_what_follows_and_not_what_was_settled_before(
        self, fifo_cloud: Cloud
    ) -> None:
        """a1 and b1 are committed in one round, the conflict fails in the next."""
        occupy(fifo_cloud, "a2")
        fifo_cloud.on(BURY, raises=client_error("InternalError", BURY))
        assert fifo_cloud.deliver(*batch("a1 b1 a2 a3 b2")) == reported("a2", "a3")
        assert fifo_cloud.statuses() == {"a1": "sent", "b1": "sent", "b2": "sent"}

    def test_is_no_verdict_where_the_read_fails(self, fifo_cloud: Cloud) -> None:
        occupy(fifo_cloud, "a2")
        fifo_cloud.on(READ, raises=client_error("InternalServerError", READ))
        assert fifo_cloud.deliver(*batch("a1 a2 a3 b1")) == reported("a2", "a3")
        assert fifo_cloud.statuses() == {"a1": "sent", "b1": "sent"}
        assert fifo_cloud.dead_letters() == []

    @pytest.mark.parametrize("place", [1, 5, 9])
    def test_that_no_reason_names_is_found_in_order(self, fifo_cloud: Cloud, place: int) -> None:
        """Each transaction that holds it is invalid as a whole."""
        names = [f"a{number}" for number in range(10)]
        whenever(fifo_cloud, f"a{place}", client_error("ValidationException"))
        assert fifo_cloud.deliver(*map(message, names), *batch("b1 b2")) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == [f"{'d' if name == f'a{place}' else 'c'} {name}" for name in names]
        assert effects(fifo_cloud, "b") == ["c b1", "c b2"]
        assert fifo_cloud.count(COMMIT) <= 10


# What lets its group go on


class TestEventThatIsSettledAlready:
    @pytest.mark.parametrize("name", ["a1", "a2", "a3"])
    def test_duplicate_lets_its_group_go_on(self, fifo_cloud: Cloud, name: str) -> None:
        fifo_cloud.deliver(message(name))
        fifo_cloud.forget()
        assert fifo_cloud.deliver(*batch("a1 a2 b1 a3")) == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK]
        assert fifo_cloud.transactions[1] == [each for each in ("a1", "a2", "b1", "a3") if each != name]

    @pytest.mark.parametrize("name", ["a1", "a2", "a3"])
    def test_pending_event_lets_its_group_go_on(self, fifo_cloud: Cloud, name: str) -> None:
        fifo_cloud.commit_without_publishing(message(name))
        assert fifo_cloud.deliver(*batch("a1 a2 b1 a3")) == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK]
        assert sorted(fifo_cloud.notified()) == ["a1", "a2", "a3", "b1"]

    @pytest.mark.parametrize(
        ("name", "calls"),
        [
            ("a1", [COMMIT, READ, PUT, COMMIT, PUBLISH, MARK]),
            ("a2", [COMMIT, READ, COMMIT, READ, PUT, COMMIT, PUBLISH, MARK]),
            ("a3", [COMMIT, READ, COMMIT, READ, PUT, PUBLISH, MARK]),
        ],
    )
    def test_superseded_event_lets_its_group_go_on_in_its_turn(
        self, fifo_cloud: Cloud, name: str, calls: list[str]
    ) -> None:
        supersede(fifo_cloud, name)
        assert fifo_cloud.deliver(*batch("a1 a2 b1 a3", version=1), **NEWER) == NOTHING_FAILED
        assert fifo_cloud.operations == calls
        assert effects(fifo_cloud, "a") == [f"{'s' if each == name else 'c'} {each}" for each in ("a1", "a2", "a3")]

    def test_superseded_event_waits_for_the_dead_letter_before_it(self, fifo_cloud: Cloud) -> None:
        occupy(fifo_cloud, "a1")
        supersede(fifo_cloud, "a2")
        assert fifo_cloud.deliver(*batch("a1 a2 a3", version=1), **NEWER) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["d a1", "s a2", "c a3"]

    def test_superseded_event_waits_for_the_conflict_of_transactions_before_it(self, fifo_cloud: Cloud) -> None:
        supersede(fifo_cloud, "a2")
        row = fifo_cloud.rows()["a2"]
        failed = {"Code": "ConditionalCheckFailed", "Item": row}
        fifo_cloud.on(COMMIT, raises=cancelled("TransactionConflict", "None", "None", failed), calls=[1])
        assert fifo_cloud.deliver(*batch("a1 a2", version=1), **NEWER) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "s a2"]

    def test_superseded_event_behind_a_failed_one_is_not_written(self, fifo_cloud: Cloud) -> None:
        supersede(fifo_cloud, "a2")
        row = fifo_cloud.rows()["a2"]
        failed = {"Code": "ConditionalCheckFailed", "Item": row}
        fifo_cloud.on(COMMIT, raises=cancelled("AccessDenied", "None", "None", failed, "None", "None"), calls=[1])
        answer = fifo_cloud.deliver(*batch("a1 a2", version=1), message("b1", version=1), **NEWER)
        assert answer == reported("a1", "a2")
        assert fifo_cloud.statuses() == {"b1": "sent"}


# What comes again


class TestHeadThatIsHeldByOthers:
    @pytest.mark.parametrize("code", ["TransactionConflict", "ThrottlingError"])
    def test_blocks_its_group_only(self, fifo_cloud: Cloud, code: str, pauses: list[int]) -> None:
        refuse(fifo_cloud, "a1", code)
        assert fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3 c1")) == reported("a1", "a2", "a3")
        assert fifo_cloud.transactions == [["a1", "b1", "a2", "b2", "a3", "c1"], ["b1", "b2", "c1"], *[["a1"]] * 4]
        assert pauses == [0, 1, 2, 3]
        assert fifo_cloud.statuses() == {"b1": "sent", "b2": "sent", "c1": "sent"}

    def test_is_committed_before_its_group_once_it_is_free(self, fifo_cloud: Cloud) -> None:
        refuse(fifo_cloud, "a1", calls=range(1, 4))
        assert fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3")) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "c a2", "c a3"]

    def test_event_in_the_middle_takes_the_later_ones_along(self, fifo_cloud: Cloud) -> None:
        refuse(fifo_cloud, "a2")
        assert fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3 c1")) == reported("a2", "a3")
        assert fifo_cloud.transactions == [
            ["a1", "b1", "a2", "b2", "a3", "c1"],
            ["a1", "b1", "b2", "c1"],
            *[["a2"]] * 4,
        ]
        assert fifo_cloud.statuses() == {"a1": "sent", "b1": "sent", "b2": "sent", "c1": "sent"}

    def test_later_event_that_is_refused_too_keeps_its_place(self, fifo_cloud: Cloud) -> None:
        """a3 was refused fewer times than a1; it may not overtake it for that."""
        conflict = ["TransactionConflict", "None"]
        fifo_cloud.on(COMMIT, raises=cancelled(*conflict, *["None"] * 4, *["None"] * 2), calls=[1])
        refuse(fifo_cloud, "a3", calls=range(1, 2))
        assert fifo_cloud.deliver(*batch("a1 a2 a3 b1")) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "c a2", "c a3"]

    def test_storm_over_all_groups_splits_them_in_order(self, fifo_cloud: Cloud) -> None:
        def answer(request: Request, effect: Effect) -> Any:
            if len(events_of(request)) > 1:
                raise client_error("TransactionConflictException")
            return effect()

        fifo_cloud.on(COMMIT, answers=answer)
        assert fifo_cloud.deliver(*batch("a1 b1 a2 b2 a3 a4 b3 a5 b4 b5")) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "c a2", "c a3", "c a4", "c a5"]
        assert effects(fifo_cloud, "b") == ["c b1", "c b2", "c b3", "c b4", "c b5"]


class TestEventThatFails:
    @pytest.mark.parametrize("error", [INTERNAL, TypeError("text")], ids=["5xx", "fault of our own"])
    @pytest.mark.parametrize(
        ("name", "left"), [("a1", "a1 a2 a3 a4"), ("a3", "a3 a4"), ("a4", "a4"), ("b1", "b1 b2 b3"), ("b3", "b3")]
    )
    def test_takes_the_later_ones_of_its_group_along_and_no_others(
        self, fifo_cloud: Cloud, error: Exception, name: str, left: str
    ) -> None:
        names = "a1 b1 a2 a3 b2 a4 b3"
        whenever(fifo_cloud, name, error)
        assert fifo_cloud.deliver(*batch(names)) == reported(*left.split())
        assert fifo_cloud.statuses() == {each: "sent" for each in names.split() if each not in left.split()}
        fifo_cloud.heal()
        assert fifo_cloud.deliver(*batch(left, receive_count=2)) == NOTHING_FAILED
        assert effects(fifo_cloud, "a") == ["c a1", "c a2", "c a3", "c a4"]
        assert effects(fifo_cloud, "b") == ["c b1", "c b2", "c b3"]

    @pytest.mark.parametrize(("name", "left"), [("a1", "a1 a2 a3"), ("a2", "a2 a3"), ("a3", "a3")])
    @pytest.mark.parametrize("receive_count", [1, 2])
    def test_in_planning_is_not_overtaken(self, fifo_cloud: Cloud, name: str, left: str, receive_count: int) -> None:
        plan = declarative_planner(Settings.from_environment(fifo_cloud.environment()))

        def stumble(event: Event) -> Plan:
            if event.id == name:
                raise TypeError("text")
            return plan(event)

        records = batch("a1 b1 a2 a3 b2", receive_count=receive_count)
        answer = fifo_cloud.consumer(stumble).handle({"Records": records}, Context(fifo_cloud))
        assert answer == reported(*left.split())
        assert fifo_cloud.statuses() == {
            each: "sent" for each in ("a1", "a2", "a3", "b1", "b2") if each not in left.split()
        }

    def test_is_not_overtaken_by_poison(self, fifo_cloud: Cloud) -> None:
        whenever(fifo_cloud, "a2", INTERNAL)
        assert fifo_cloud.deliver(*batch("a1 a2"), poison("a3"), *batch("a4 b1")) == reported("a2", "a3", "a4")
        assert fifo_cloud.dead_letters() == []
        assert fifo_cloud.statuses() == {"a1": "sent", "b1": "sent"}

    def test_is_not_overtaken_by_a_conflict(self, fifo_cloud: Cloud) -> None:
        occupy(fifo_cloud, "a3")
        whenever(fifo_cloud, "a2", INTERNAL)
        assert fifo_cloud.deliver(*batch("a1 a2 a3 a4 b1")) == reported("a2", "a3", "a4")
        assert fifo_cloud.dead_letters() == []

    @pytest.mark.parametrize("operation", [PUBLISH, MARK])
    def test_after_the_commit_reports_the_later_ones_committed_or_not(self, fifo_cloud: Cloud, operation: str) -> None:
        occupy(fifo_cloud, "a2")
        fifo_cloud.on(operation, raises=client_error("InternalError", operation))
        assert fifo_cloud.deliver(*batch("a1 a2 a3 b1 b2")) == reported("a1", "a2", "a3", "b1", "b2")
        assert fifo_cloud.statuses() == dict.fromkeys(["a1", "a3", "b1", "b2"], "pending")
        fifo_cloud.heal()
        assert fifo_cloud.deliver(*batch("a1 a2 a3 b1 b2", receive_count=2)) == NOTHING_FAILED
        assert set(fifo_cloud.statuses().values()) == {"sent"}
        # The dead letter was stored, and its group was reported all the same: the queue drops the second copy.
        assert [letter.deduplication_id for letter in fifo_cloud.dead_letters()] == ["a2"]

    def test_entry_that_is_not_published_reports_the_later_ones_of_its_group(self, fifo_cloud: Cloud) -> None:
        entries = {"a1": "0", "b1": "1", "a2": "2", "a3": "3", "b2": "4"}
        failed = [{"Id": entries["a2"], "Code": "InternalError", "SenderFault": False}]
        done = [{"Id": entry} for name, entry in entries.items() if name != "a2"]
        fifo_cloud.on(PUBLISH, answers={"Successful": done, "Failed": failed})
        assert fifo_cloud.deliver(*batch("a1 b1 a2 a3 b2")) == reported("a2", "a3")
        assert fifo_cloud.statuses() == {**dict.fromkeys(["a1", "a3", "b1", "b2"], "sent"), "a2": "pending"}


class TestVerdictsThatAnEarlyReadGives:
    """All are redelivered: one read tells what became of a2 (pending), a3 (sent) and a4 (id reused)."""

    BATCH = (
        message("a1", receive_count=2),
        message("a2", receive_count=2),
        message("a3", receive_count=2),
        message("a4", receive_count=2, amount=99),
        message("a5", receive_count=2),
        message("b1", receive_count=2),
    )

    @pytest.fixture
    def prepared(self, fifo_cloud: Cloud) -> Cloud:
        fifo_cloud.deliver(*batch("a3 a4"))
        fifo_cloud.commit_without_publishing(*batch("a2 b1"))
        fifo_cloud.notifications()
        return fifo_cloud

    def test_are_acted_upon_in_their_turn(self, prepared: Cloud) -> None:
        assert prepared.deliver(*self.BATCH) == NOTHING_FAILED
        assert prepared.operations == [READ, COMMIT, BURY, COMMIT, PUBLISH, MARK]
        assert prepared.transactions == [["a1"], ["a5"]]
        assert effects(prepared, "a") == ["c a1", "d a4", "c a5"]

    @pytest.mark.parametrize("error", [INTERNAL, cancelled("TransactionConflict", "None"), TypeError("text")])
    def test_are_not_acted_upon_where_an_earlier_one_fails(self, prepared: Cloud, error: Exception) -> None:
        whenever(prepared, "a1", error)
        assert prepared.deliver(*self.BATCH) == reported("a1", "a2", "a3", "a4", "a5")
        assert prepared.dead_letters() == []
        assert prepared.notified()[2:] == ["b1"]
        assert prepared.statuses() == {"a2": "pending", "a3": "sent", "a4": "sent", "b1": "sent"}
        prepared.heal()
        assert prepared.deliver(*self.BATCH[:-1]) == NOTHING_FAILED
        assert effects(prepared, "a") == ["c a1", "d a4", "c a5"]

    def test_are_acted_upon_behind_a_dead_letter(self, prepared: Cloud) -> None:
        occupy(prepared, "a1")
        assert prepared.deliver(*self.BATCH) == NOTHING_FAILED
        assert effects(prepared, "a") == ["d a1", "d a4", "c a5"]
        assert sorted(prepared.notified()[2:]) == ["a2", "a5", "b1"]

    def test_are_not_acted_upon_behind_a_dead_letter_that_cannot_be_sent(self, prepared: Cloud) -> None:
        occupy(prepared, "a1")
        prepared.on(BURY, raises=client_error("InternalError", BURY))
        assert prepared.deliver(*self.BATCH) == reported("a1", "a2", "a3", "a4", "a5")
        assert prepared.statuses() == {"a2": "pending", "a3": "sent", "a4": "sent", "b1": "sent"}
        assert prepared.count(BURY) == 1


# Answers that are lost, processes that die, time that runs out


def test_answer_of_a_transaction_that_is_lost_is_made_good_in_the_same_invocation(fifo_cloud: Cloud) -> None:
    closed = ConnectionClosedError(endpoint_url="https://aws.example")
    fifo_cloud.on(COMMIT, raises=closed, after=True, calls=[1])
    assert fifo_cloud.deliver(*batch("a1 b1 a2 b2")) == NOTHING_FAILED
    assert fifo_cloud.operations == [COMMIT, READ, PUBLISH, MARK]
    assert sorted(fifo_cloud.notified()) == ["a1", "a2", "b1", "b2"]


@pytest.mark.parametrize(
    ("call", "after"),
    # The first call has no effect: it is cancelled for a2.
    [(1, False), *((call, after) for call in range(2, 8) for after in (False, True))],
)
def test_process_that_dies_leaves_no_group_out_of_order(fifo_cloud: Cloud, call: int, after: bool) -> None:
    occupy(fifo_cloud, "a2")
    records = [*batch("a1 b1 a2 a3"), poison("b2"), *batch("b3 a4")]
    fifo_cloud.on("*", raises=Killed(), after=after, calls=[call])
    with pytest.raises(Killed):
        fifo_cloud.deliver(*records)
    again = [*batch("a1 b1 a2 a3", receive_count=2), poison("b2"), *batch("b3 a4", receive_count=2)]
    assert fifo_cloud.deliver(*again) == NOTHING_FAILED
    assert list(dict.fromkeys(effects(fifo_cloud, "a"))) == ["c a1", "d a2", "c a3", "c a4"]
    assert list(dict.fromkeys(effects(fifo_cloud, "b"))) == ["c b1", "d b2", "c b3"]
    assert set(fifo_cloud.statuses().values()) == {"sent"}


def test_groups_are_reported_from_where_time_runs_out(fifo_cloud: Cloud) -> None:
    occupy(fifo_cloud, "a2")
    context = Context(fifo_cloud, 13_000, {COMMIT: 1_000, READ: 1_000, BURY: 1_000})
    assert fifo_cloud.deliver(*batch("a1 b1 a2 a3 b2"), context=context) == reported("a3")
    assert effects(fifo_cloud, "a") == ["c a1", "d a2"]
    assert fifo_cloud.statuses() == {"a1": "sent", "b1": "sent", "b2": "sent"}


def test_group_that_is_held_in_the_first_part_of_a_large_batch_is_held_in_the_next(fifo_cloud: Cloud) -> None:
    """Lambda hands over ten records of a FIFO queue at most; the order must not hang on that."""
    names = [f"a{number}" for number in range(60)]
    whenever(fifo_cloud, "a40", INTERNAL)
    assert fifo_cloud.deliver(*map(message, names), message("b1")) == reported(*names[40:])
    assert fifo_cloud.statuses() == dict.fromkeys([*names[:40], "b1"], "sent")


# Rows and events that groups share


def test_row_that_two_groups_write_makes_the_later_group_wait(fifo_cloud: Cloud) -> None:
    """b1 writes the row of a1, so that b2 waits for b1 in turn."""
    rows: dict[str, Any] = {"EVENT_ID": "event", "EVENT_WRITE_MODE": "upsert"}
    records = [
        record(name, {"event": name, "id": row}, group=name[0])
        for name, row in (("a1", "shared"), ("b1", "shared"), ("b2", "own"), ("a2", "other"), ("c1", "free"))
    ]
    assert fifo_cloud.deliver(*records, **rows) == NOTHING_FAILED
    assert fifo_cloud.transactions == [["a1", "a2", "c1"], ["b1", "b2"]]
    assert fifo_cloud.rows()["shared"]["event_id"] == {"S": "b1"}


def test_event_that_two_groups_carry_is_committed_once(fifo_cloud: Cloud) -> None:
    records = [*batch("a1"), record("b1", {"id": "a1"}, group="b"), *batch("b2 a2")]
    assert fifo_cloud.deliver(*records) == NOTHING_FAILED
    assert fifo_cloud.transactions == [["a1", "a2"], ["a1", "b2"], ["b2"]]
    assert fifo_cloud.notified() == ["a1", "b2", "a2"]


def test_copy_in_another_group_is_committed_where_the_first_is_blocked(fifo_cloud: Cloud) -> None:
    whenever(fifo_cloud, "a1", INTERNAL)
    records = [*batch("a1 a2"), record("b1", {"id": "a2"}, group="b")]
    assert fifo_cloud.deliver(*records) == reported("a1", "a2")
    assert fifo_cloud.statuses() == {"a2": "sent"}
    assert fifo_cloud.ledger()["a2"]["message_id"] == {"S": "b1"}


# Messages of several events


S3: dict[str, Any] = {"EVENT_ENVELOPE": "s3", "EVENT_ID": "id", "EVENT_ITEM": "{id: id}"}


def several(name: str, event_ids: Sequence[str | None]) -> Record:
    """A message of several events; one without an id can never succeed."""
    body = {"Records": [{"s3": {"object": {"key": "k"}}, "id": event_id} for event_id in event_ids]}
    return record(name, body, group=name[0])


class TestMessagesOfSeveralEvents:
    def test_share_a_transaction(self, fifo_cloud: Cloud) -> None:
        assert fifo_cloud.deliver(several("a1", ["u", "v"]), several("a2", ["w"]), **S3) == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, PUBLISH, MARK]
        assert fifo_cloud.transactions == [["u", "v", "w"]]

    @pytest.mark.parametrize(("bad", "committed"), [("u", []), ("v", ["u"]), ("w", ["u", "v"])])
    def test_event_that_fails_blocks_those_behind_it(self, fifo_cloud: Cloud, bad: str, committed: list[str]) -> None:
        whenever(fifo_cloud, bad, INTERNAL)
        records = [several("a1", ["u", "v", "w"]), several("a2", ["x"]), several("b1", ["y"])]
        assert fifo_cloud.deliver(*records, **S3) == reported("a1", "a2")
        assert fifo_cloud.statuses() == dict.fromkeys([*committed, "y"], "sent")
        fifo_cloud.heal()
        assert fifo_cloud.deliver(*records[:2], **S3) == NOTHING_FAILED
        order = [event_id for what, event_id in fifo_cloud.history if what == "committed" and event_id != "y"]
        assert order == ["u", "v", "w", "x"]

    def test_conflict_at_the_end_holds_the_group_until_its_message_is_dead_lettered(self, fifo_cloud: Cloud) -> None:
        """The first event has to be published before its message may go: too late for the next message."""
        occupy(fifo_cloud, "v")
        records = [several("a1", ["u", "v"]), several("a2", ["x"]), several("b1", ["y"])]
        assert fifo_cloud.deliver(*records, **S3) == reported("a2")
        assert fifo_cloud.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK, BURY]
        assert fifo_cloud.transactions[1] == ["u", "y"]
        assert fifo_cloud.deliver(records[1], **S3) == NOTHING_FAILED
        assert fifo_cloud.statuses() == dict.fromkeys(["u", "x", "y"], "sent")

    @pytest.mark.parametrize("first", [None, "v"])
    def test_dead_event_before_others_is_left_to_the_redrive_policy(self, fifo_cloud: Cloud, first: str | None) -> None:
        occupy(fifo_cloud, "v")
        records = [several("a1", [first, "u"]), several("a2", ["x"]), several("b1", ["y"])]
        assert fifo_cloud.deliver(*records, **S3) == reported("a1", "a2")
        assert fifo_cloud.statuses() == {"y": "sent"}
        assert fifo_cloud.dead_letters() == []

    def test_message_that_is_dead_as_a_whole_lets_its_group_go_on(self, fifo_cloud: Cloud) -> None:
        fifo_cloud.deliver(several("a0", ["u"]), **S3)
        fifo_cloud.forget()
        records = [several("a1", ["u", None]), several("a2", ["x"])]
        assert fifo_cloud.deliver(*records, **S3) == NOTHING_FAILED
        assert fifo_cloud.operations == [COMMIT, BURY, COMMIT, PUBLISH, MARK]


def test_refusals_without_reasons_keep_the_order(fifo_cloud: Cloud) -> None:
    """AWS says only that the transaction failed, and the read fails too."""
    fifo_cloud.deliver(*batch("a2 b2"))
    fifo_cloud.forget()

    def answer(request: Request, effect: Effect) -> Any:
        try:
            return effect()
        except ClientError:
            raise cancelled(*["None"] * len(request["TransactItems"])) from None

    fifo_cloud.on(COMMIT, answers=answer)
    fifo_cloud.on(READ, raises=client_error("InternalServerError", READ))
    assert fifo_cloud.deliver(*batch("a1 b1 c1 a2 a3 b2")) == reported("a2", "a3", "b2")
    assert fifo_cloud.statuses() == dict.fromkeys(["a1", "a2", "b1", "b2", "c1"], "sent")
    fifo_cloud.heal()
    assert fifo_cloud.deliver(*batch("a2 a3 b2", receive_count=2)) == NOTHING_FAILED
    assert effects(fifo_cloud, "a") == ["c a1", "c a3"]
