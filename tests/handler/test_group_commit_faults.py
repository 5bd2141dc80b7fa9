"""A transaction of many events fails: what it is about leaves it, the others are settled, and tries are bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, ClassVar

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError
from botocore.parsers import ResponseParserError

from idempotent_consumer.settlement import Misconfigured
from tests.handler.support import (
    BURY,
    BUSINESS,
    COMMIT,
    LEDGER,
    MARK,
    NOTHING_FAILED,
    PUBLISH,
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
Reason = dict[str, Any]
Effect = Callable[[], Any]
Logged = Callable[[], list[tuple[str, str, str, str]]]
Metrics = Callable[[], dict[str, Any]]

CLOSED = ConnectionClosedError(endpoint_url="https://aws.example")
NONE: Reason = {"Code": "None"}
TEN = range(10)


def order(number: int, *, receive_count: int = 1, **more: Any) -> Record:
    return record(f"m-{number}", {"id": f"o-{number}", **more}, receive_count=receive_count)


def orders(numbers: Iterable[int], **more: Any) -> list[Record]:
    return [order(number, **more) for number in numbers]


def ids(numbers: Iterable[int]) -> list[str]:
    return [f"o-{number}" for number in numbers]


def messages(numbers: Iterable[int]) -> list[str]:
    return [f"m-{number}" for number in numbers]


def sizes(cloud: Cloud) -> list[int]:
    return [len(events) for events in cloud.transactions]


def others(numbers: Iterable[int], *without: int) -> list[int]:
    return [number for number in numbers if number not in without]


def occupy(cloud: Cloud, *numbers: int) -> None:
    """Their business rows are somebody else's."""
    for number in numbers:
        cloud.store(BUSINESS, {"id": {"S": f"o-{number}"}, "owner": {"S": "somebody else"}})


# AWS need not name every action that failed


Blur = Callable[[list[Reason]], Sequence[Reason]]


def only_the_first(reasons: list[Reason]) -> Sequence[Reason]:
    first = next(index for index, reason in enumerate(reasons) if reason["Code"] != "None")
    return [reason if index == first else NONE for index, reason in enumerate(reasons)]


def only_the_last(reasons: list[Reason]) -> Sequence[Reason]:
    return list(reversed(only_the_first(list(reversed(reasons)))))


def none_of_them(reasons: list[Reason]) -> Sequence[Reason]:
    return [NONE] * len(reasons)


def one_too_few(reasons: list[Reason]) -> Sequence[Reason]:
    return reasons[1:]


def one_too_many(reasons: list[Reason]) -> Sequence[Reason]:
    return [*reasons, NONE]


def no_reasons(_reasons: list[Reason]) -> Sequence[Reason]:
    return []


def without_items(reasons: list[Reason]) -> Sequence[Reason]:
    return [{"Code": reason["Code"]} for reason in reasons]


def play(cloud: Cloud, blur: Blur) -> None:
    """Cancellations say less than they might."""

    def answer(_request: Request, effect: Effect) -> Any:
        try:
            return effect()
        except ClientError as error:
            raise cancelled(*blur(error.response["CancellationReasons"])) from None

    cloud.on(COMMIT, answers=answer)


class TestReasonsThatAreIncomplete:
    """o-0, o-3, o-6 are sent, o-1, o-4, o-7 are pending, the other four are new; none was received before."""

    SENT, PENDING, NEW = [0, 3, 6], [1, 4, 7], [2, 5, 8, 9]

    @pytest.fixture
    def prepared(self, cloud: Cloud) -> Cloud:
        cloud.deliver(*orders(self.SENT))
        cloud.commit_without_publishing(*orders(self.PENDING))
        return cloud

    def check(self, cloud: Cloud) -> None:
        assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")
        assert sorted(cloud.notified()) == ids(TEN)
        assert cloud.dead_letters() == []

    def test_all_are_named(self, prepared: Cloud) -> None:
        assert prepared.deliver(*orders(TEN)) == NOTHING_FAILED
        assert prepared.operations == [COMMIT, READ, COMMIT, PUBLISH, MARK]
        assert prepared.reads == [ids(self.NEW)]
        self.check(prepared)

    @pytest.mark.parametrize(
        ("blur", "left"),
        [
            (only_the_first, others(TEN, 0)),
            (only_the_last, [*TEN]),
            (none_of_them, [*TEN]),
            (one_too_few, [*TEN]),
            (one_too_many, [*TEN]),
            (no_reasons, [*TEN]),
            (without_items, [*TEN]),
        ],
    )
    def test_one_read_sorts_those_that_are_not_named(self, prepared: Cloud, blur: Blur, left: list[int]) -> None:
        play(prepared, blur)
        assert prepared.deliver(*orders(TEN)) == NOTHING_FAILED
        assert prepared.operations[:2] == [COMMIT, READ]
        assert prepared.reads == [ids(left)]
        assert [event_id for events in prepared.transactions[1:] for event_id in events] == ids(self.NEW)
        self.check(prepared)

    def test_reasons_without_the_key_are_no_reasons(self, prepared: Cloud) -> None:
        def answer(_request: Request, effect: Effect) -> Any:
            try:
                return effect()
            except ClientError:
                raise client_error("TransactionCanceledException") from None

        prepared.on(COMMIT, answers=answer)
        assert prepared.deliver(*orders(TEN)) == NOTHING_FAILED
        assert prepared.reads == [ids(TEN)]
        self.check(prepared)

    def test_each_cancellation_helps_on_where_the_read_fails(self, prepared: Cloud) -> None:
        play(prepared, only_the_first)
        prepared.on(READ, raises=client_error("InternalServerError", READ))
        assert prepared.deliver(*orders(TEN)) == NOTHING_FAILED
        # One after the other leaves: sent and pending ones in the order of the batch.
        assert sizes(prepared) == [10, 9, 8, 7, 6, 5, 4]
        self.check(prepared)

    @pytest.mark.parametrize("blur", [none_of_them, no_reasons])
    def test_new_events_are_committed_where_nothing_is_named_and_the_read_fails(
        self, prepared: Cloud, blur: Blur
    ) -> None:
        play(prepared, blur)
        prepared.on(READ, raises=client_error("InternalServerError", READ))
        assert prepared.deliver(*orders(TEN)) == reported(*messages(sorted(self.SENT + self.PENDING)))
        assert prepared.count(COMMIT) <= 16
        assert prepared.statuses() == {
            **dict.fromkeys(ids(self.SENT + self.NEW), "sent"),
            **dict.fromkeys(ids(self.PENDING), "pending"),
        }
        prepared.heal()
        assert prepared.deliver(*orders(self.SENT + self.PENDING, receive_count=2)) == NOTHING_FAILED
        self.check(prepared)


class TestRefusedBusinessRowsThatAreNotNamed:
    @pytest.mark.parametrize("blur", [only_the_first, only_the_last])
    def test_one_after_the_other_is_dead_lettered(self, cloud: Cloud, blur: Blur) -> None:
        occupy(cloud, 2, 4, 9)
        play(cloud, blur)
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert sizes(cloud) == [10, 9, 8, 7]
        assert cloud.reasons() == ["row-exists"] * 3
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 2, 4, 9)), "sent")

    @pytest.mark.parametrize("blur", [none_of_them, no_reasons, one_too_few])
    def test_event_that_is_refused_without_a_reason_is_reported_alone_after_bounded_tries(
        self, cloud: Cloud, blur: Blur, logged: Logged, pauses: list[int]
    ) -> None:
        occupy(cloud, 3)
        play(cloud, blur)
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        # With ever fewer others, and five times alone: at once, and four times when all others are done.
        assert sizes(cloud) == [10, 2, 2, 1, 1, 2, 2, 2, 1, 1, 1, 1]
        assert [events for events in cloud.transactions if events == ["o-3"]] == [["o-3"]] * 5
        assert cloud.transactions[-4:] == [["o-3"]] * 4
        assert pauses == [0, 1, 2, 3]
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")
        assert logged() == [("m-3", "retry", "ledger-undecided", "the transaction was refused without saying why")]
        cloud.heal()
        assert cloud.deliver(order(3, receive_count=2)) == NOTHING_FAILED
        assert cloud.reasons() == ["row-exists"]

    def test_row_that_is_not_shown_is_no_verdict(self, cloud: Cloud) -> None:
        occupy(cloud, 3)
        play(cloud, without_items)
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        assert sizes(cloud) == [10, 9, 1, 1, 1, 1]
        assert cloud.dead_letters() == []
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")

    def test_refused_row_is_no_verdict_where_the_read_fails(self, cloud: Cloud) -> None:
        occupy(cloud, 3)
        cloud.on(READ, raises=client_error("InternalServerError", READ))
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        assert cloud.dead_letters() == []
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")

    def test_refused_row_is_no_verdict_where_the_read_leaves_the_event_over(self, cloud: Cloud) -> None:
        occupy(cloud, 3)
        left = {LEDGER: {"Keys": [{"event_id": {"S": "o-3"}}]}}
        cloud.on(READ, answers={"Responses": {LEDGER: []}, "UnprocessedKeys": left})
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        assert cloud.dead_letters() == []
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")

    def test_refused_row_of_an_event_that_the_ledger_knows_is_a_duplicate(self, cloud: Cloud) -> None:
        """Its own row stands in its way, and only that is named."""
        cloud.deliver(order(3))
        cloud.forget()
        play(cloud, only_the_last)
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.reads == [ids(TEN)]
        assert cloud.dead_letters() == []
        assert sorted(cloud.notified()) == ids(TEN)


# Events that others hold


def refuse_with(cloud: Cloud, reasons_of: Callable[[str], Sequence[str]]) -> None:
    """Cancels each transaction that holds an event with a reason; reasons_of: the codes of its two actions."""

    def answer(request: Request, effect: Effect) -> Any:
        codes = [code for event_id in events_of(request) for code in reasons_of(event_id)]
        if any(code != "None" for code in codes):
            raise cancelled(*codes)
        return effect()

    cloud.on(COMMIT, answers=answer)


def on_events(reasons: Mapping[str, Sequence[str]]) -> Callable[[str], Sequence[str]]:
    return lambda event_id: reasons.get(event_id, ("None", "None"))


PASSING = ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]


class TestEventThatIsHeldByOthers:
    @pytest.mark.parametrize("code", PASSING)
    @pytest.mark.parametrize("action", ["ledger", "business"])
    def test_is_reported_after_five_tries_and_keeps_nobody_waiting(
        self, cloud: Cloud, code: str, action: str, pauses: list[int]
    ) -> None:
        codes = (code, "None") if action == "ledger" else ("None", code)
        refuse_with(cloud, on_events({"o-3": codes}))
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        assert cloud.transactions == [ids(TEN), ids(others(TEN, 3)), *[["o-3"]] * 4]
        assert cloud.operations == [*[COMMIT] * 6, PUBLISH, MARK]
        assert pauses == [0, 1, 2, 3]
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")

    @pytest.mark.parametrize("business", ["ConditionalCheckFailed", "ValidationError"])
    def test_is_not_judged_by_its_business_row(self, cloud: Cloud, business: str) -> None:
        """The ledger's reason outranks the other: the event may be committed already."""
        refuse_with(cloud, on_events({"o-3": ("TransactionConflict", business)}))
        assert cloud.deliver(*orders(TEN)) == reported("m-3")
        assert sizes(cloud) == [10, 9, 1, 1, 1, 1]
        assert cloud.dead_letters() == []

    def test_is_committed_once_it_is_free(self, cloud: Cloud, pauses: list[int]) -> None:
        cloud.on(COMMIT, raises=cancelled("TransactionConflict", *["None"] * 19), calls=[1])
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.transactions == [ids(TEN), ids(range(1, 10)), ["o-0"]]
        assert pauses == [0]
        assert cloud.history[:10] == [("committed", event_id) for event_id in [*ids(range(1, 10)), "o-0"]]

    def test_two_of_them_try_again_together(self, cloud: Cloud) -> None:
        codes = ["TransactionConflict", "None", *["None"] * 16, "None", "TransactionConflict"]
        cloud.on(COMMIT, raises=cancelled(*codes), calls=[1])
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.transactions == [ids(TEN), ids(range(1, 9)), ["o-0", "o-9"]]

    def test_one_that_has_to_go_alone_joins_no_other(self, cloud: Cloud) -> None:
        """o-0 may share its next transaction with one other, o-1 with none."""
        cloud.on(COMMIT, raises=cancelled("TransactionConflict", *["None"] * 19), calls=[1])
        cloud.on(COMMIT, raises=client_error("InternalServerError"), calls=[2])
        cloud.on(COMMIT, raises=cancelled("TransactionConflict", *["None"] * 3), calls=[3])
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        pairs = [["o-2", "o-3"], ["o-4", "o-5"], ["o-6", "o-7"], ["o-8", "o-9"]]
        assert cloud.transactions == [ids(TEN), ids(range(1, 10)), ["o-1", "o-2"], *pairs, ["o-0"], ["o-1"]]

    def test_its_copy_waits_with_it(self, cloud: Cloud) -> None:
        refuse_with(cloud, on_events({"o-3": ("TransactionConflict", "None")}))
        batch = [*orders(TEN), record("m-copy", {"id": "o-3"})]
        assert cloud.deliver(*batch) == reported("m-3", "m-copy")
        assert cloud.transactions[:2] == [ids(TEN), ids(others(TEN, 3))]
        assert sizes(cloud)[2:] == [1] * 9
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 3)), "sent")

    def test_is_sorted_out_with_what_else_is_named(self, cloud: Cloud) -> None:
        """One conflicts, one is a duplicate, one is taken, one is new: each by its own reason."""
        cloud.deliver(order(1))
        occupy(cloud, 2)
        sent, owner = cloud.ledger()["o-1"], cloud.rows()["o-2"]
        cloud.forget()
        failed = {"Code": "ConditionalCheckFailed"}
        duplicate, taken = {**failed, "Item": sent}, {**failed, "Item": owner}
        reasons = cancelled("TransactionConflict", "None", duplicate, "None", "None", taken, "None", "None")
        cloud.on(COMMIT, raises=reasons, calls=[1])
        assert cloud.deliver(*orders(range(4))) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, COMMIT, COMMIT, BURY, PUBLISH, MARK]
        assert cloud.reads == [["o-2", "o-3"]]
        assert cloud.transactions == [ids(range(4)), ["o-3"], ["o-0"]]
        assert cloud.reasons() == ["row-exists"]
        assert sorted(cloud.notified()) == ["o-0", "o-1", "o-3"]


class TestStormOfConflicts:
    @pytest.mark.parametrize("code", PASSING[:2])
    @pytest.mark.parametrize(
        ("rounds", "tried", "paused"),
        [
            (1, [10, 2, 2, 2, 2, 2], [0] * 5),
            (3, [10, 2, 2, 2, 2, 2, 1, 1, 1, 1], [0] * 5 + [1] * 4),
            (6, [10, 2, 2, 2, 2, 2, *[1] * 10], [0] * 5 + [1] * 10),
            (16, [10, 2, 2, 2, 2, 2, *[1] * 20], [0] * 5 + [1] * 10 + [2] * 10),
            (26, [10, 2, 2, 2, 2, 2, *[1] * 30], [0] * 5 + [1] * 10 + [2] * 10 + [3] * 10),
        ],
    )
    def test_over_all_events_splits_the_group(
        self, cloud: Cloud, code: str, rounds: int, tried: list[int], paused: list[int], pauses: list[int]
    ) -> None:
        def answer(request: Request, _effect: Effect) -> Any:
            raise cancelled(*[code, "None"] * len(events_of(request)))

        cloud.on(COMMIT, answers=answer, calls=range(1, rounds + 1))
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert sizes(cloud) == tried
        assert pauses == paused
        assert cloud.count(READ) == 0
        assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")
        assert sorted(cloud.notified()) == ids(TEN)

    @pytest.mark.parametrize(("events", "tries"), [(10, 1 + 5 + 3 * 10), (50, 1 + 5 + 18 + 2 * 50)])
    @pytest.mark.parametrize("named", [True, False])
    def test_that_does_not_end_is_reported_after_bounded_tries(
        self, cloud: Cloud, events: int, tries: int, named: bool
    ) -> None:
        """The most that a group can cost: five tries an event, shared by fifty, twelve, three, and then alone."""

        def answer(request: Request, _effect: Effect) -> Any:
            codes = ["ThrottlingError", "None"] * len(events_of(request))
            raise cancelled(*codes) if named else client_error("ThrottlingException")

        cloud.on(COMMIT, answers=answer)
        assert cloud.deliver(*orders(range(events))) == reported(*messages(range(events)))
        assert cloud.count(COMMIT) == tries
        assert cloud.operations == [COMMIT] * tries
        assert cloud.ledger() == {}

    def test_over_transactions_of_several_events_is_over_once_each_is_alone(self, cloud: Cloud) -> None:
        def answer(request: Request, effect: Effect) -> Any:
            if len(events_of(request)) > 1:
                raise client_error("TransactionConflictException")
            return effect()

        cloud.on(COMMIT, answers=answer)
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert sizes(cloud) == [10, 2, 2, 2, 2, 2, *[1] * 10]
        assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")

    @pytest.mark.parametrize("seed", range(8))
    def test_at_random_doubles_nothing_and_ends(self, cloud: Cloud, seed: int) -> None:
        chance = Random(seed)

        def reasons(_event_id: str) -> Sequence[str]:
            return [chance.choice(PASSING) if chance.random() < 0.2 else "None" for _action in range(2)]

        refuse_with(cloud, reasons)
        left = orders(range(20))
        for _ in range(4):
            before = cloud.count(COMMIT)
            answer = cloud.deliver(*left)
            # Each try of an event ends with it, or counts one of its five.
            assert cloud.count(COMMIT) - before <= 5 * len(left)
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            left = [message for message in left if message["messageId"] in failed]
        cloud.heal()
        assert cloud.deliver(*left) == NOTHING_FAILED
        committed = [event_id for what, event_id in cloud.history if what == "committed"]
        assert sorted(committed) == sorted(ids(range(20)))
        assert sorted(cloud.notified()) == sorted(ids(range(20)))


# An event that no transaction takes


def whenever(cloud: Cloud, event_id: str, error: Exception) -> None:
    """The call fails whenever this event is in the transaction."""

    def answer(request: Request, effect: Effect) -> Any:
        if event_id in events_of(request):
            raise error
        return effect()

    cloud.on(COMMIT, answers=answer)


class TestEventThatSpoilsEachTransaction:
    """Nothing says which one it is: groups get smaller until it is alone."""

    TRIED: ClassVar = {
        (10, 0): [10, 2, 1, 1, 2, 2, 2, 2],
        (10, 4): [10, 2, 2, 2, 1, 1, 2, 2],
        (10, 9): [10, 2, 2, 2, 2, 2, 1, 1],
        (50, 0): [50, 12, 3, 1, 1, 1, 3, 3, 3, 12, 12, 12, 2],
        (50, 49): [50, 12, 12, 12, 12, 2, 1, 1],
    }

    @pytest.mark.parametrize(("events", "bad"), TRIED)
    def test_invalid_one_is_dead_lettered_and_all_others_are_committed(
        self, cloud: Cloud, events: int, bad: int
    ) -> None:
        whenever(cloud, f"o-{bad}", client_error("ValidationException"))
        assert cloud.deliver(*orders(range(events))) == NOTHING_FAILED
        assert sorted(sizes(cloud)) == sorted(self.TRIED[events, bad])
        assert [(letter.reason, letter.body) for letter in cloud.dead_letters()] == [
            ("refused-by-dynamodb", f'{{"id":"o-{bad}"}}')
        ]
        assert cloud.statuses() == dict.fromkeys(ids(others(range(events), bad)), "sent")
        assert sorted(cloud.notified()) == sorted(ids(others(range(events), bad)))

    @pytest.mark.parametrize(("events", "bad"), TRIED)
    @pytest.mark.parametrize(
        ("error", "reason"),
        [
            (client_error("InternalServerError"), "unavailable"),
            (client_error("SomethingNew"), "unavailable"),
            (TypeError("text"), "fault"),
        ],
        ids=["5xx", "unknown", "fault of our own"],
    )
    def test_one_that_fails_is_reported_and_all_others_are_committed(
        self, cloud: Cloud, events: int, bad: int, error: Exception, reason: str, logged: Logged
    ) -> None:
        whenever(cloud, f"o-{bad}", error)
        assert cloud.deliver(*orders(range(events))) == reported(f"m-{bad}")
        assert sorted(sizes(cloud)) == sorted(self.TRIED[events, bad])
        assert cloud.dead_letters() == []
        assert cloud.statuses() == dict.fromkeys(ids(others(range(events), bad)), "sent")
        assert [(message_id, outcome, code) for message_id, outcome, code, _detail in logged()] == [
            (f"m-{bad}", "retry", reason)
        ]

    def test_two_of_them_are_found(self, cloud: Cloud) -> None:
        def answer(request: Request, effect: Effect) -> Any:
            if {"o-2", "o-7"} & set(events_of(request)):
                raise client_error("ValidationException")
            return effect()

        cloud.on(COMMIT, answers=answer)
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.reasons() == ["refused-by-dynamodb"] * 2
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 2, 7)), "sent")

    def test_all_of_them_are_invalid(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=client_error("ValidationException"))
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert sizes(cloud) == [10, *[2, 1, 1] * 5]
        assert cloud.reasons() == ["refused-by-dynamodb"] * 10
        assert cloud.ledger() == {}

    def test_invalid_one_that_the_ledger_knows_is_decided_by_its_row(self, cloud: Cloud) -> None:
        cloud.commit_without_publishing(order(4))
        whenever(cloud, "o-4", client_error("ValidationException"))
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.transactions == [ids(TEN), *[ids(pair) for pair in ([0, 1], [2, 3], [5, 6], [7, 8], [9])]]
        assert cloud.dead_letters() == []
        assert sorted(cloud.notified()) == ids(TEN)

    def test_invalid_one_that_is_alone_is_decided_by_its_row_too(self, cloud: Cloud) -> None:
        cloud.commit_without_publishing(order(4))
        whenever(cloud, "o-4", client_error("ValidationException"))
        assert cloud.deliver(order(4)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, PUBLISH, MARK]
        assert cloud.dead_letters() == []

    @pytest.mark.parametrize("code", ["ValidationError", "ItemCollectionSizeLimitExceeded"])
    def test_one_that_is_named_is_dead_lettered_at_once(self, cloud: Cloud, code: str) -> None:
        refuse_with(cloud, on_events({"o-4": ("None", code)}))
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, COMMIT, BURY, PUBLISH, MARK]
        assert cloud.reads == [ids(TEN)]
        assert cloud.transactions[1:] == [ids(others(TEN, 4))]
        assert [(letter.reason, letter.detail) for letter in cloud.dead_letters()] == [
            ("refused-by-dynamodb", f"TransactWriteItems: {code}")
        ]

    @pytest.mark.parametrize("code", ["AccessDenied", "SomethingNew"])
    def test_one_that_is_named_for_something_else_is_reported_at_once(self, cloud: Cloud, code: str) -> None:
        refuse_with(cloud, on_events({"o-4": ("None", code)}))
        assert cloud.deliver(*orders(TEN)) == reported("m-4")
        assert sizes(cloud) == [10, 9]
        assert cloud.statuses() == dict.fromkeys(ids(others(TEN, 4)), "sent")

    def test_missing_right_is_asked_for_once(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=client_error("AccessDeniedException"))
        with pytest.raises(Misconfigured):
            cloud.deliver(*orders(TEN))
        assert cloud.operations == [COMMIT]


# A transaction whose answer is lost, a process that dies


class TestAnswerThatIsLost:
    @pytest.mark.parametrize(
        "error", [CLOSED, ResponseParserError("not JSON"), client_error("InternalServerError"), TypeError("text")]
    )
    def test_ledger_is_read_and_the_events_are_published_at_once(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=error, after=True, calls=[1])
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, PUBLISH, MARK]
        assert sorted(cloud.notified()) == ids(TEN)
        assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")

    @pytest.mark.parametrize("error", [client_error("InternalServerError", READ), CLOSED])
    def test_transactions_say_so_where_the_read_fails(self, cloud: Cloud, error: Exception) -> None:
        cloud.on(COMMIT, raises=CLOSED, after=True, calls=[1])
        cloud.on(READ, raises=error)
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert sizes(cloud) == [10, 2, 2, 2, 2, 2]
        assert [what for what, _ in cloud.history].count("committed") == 10
        assert sorted(cloud.notified()) == ids(TEN)

    def test_request_that_is_lost_is_made_again_for_smaller_groups(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=CLOSED, calls=[1])
        assert cloud.deliver(*orders(TEN)) == NOTHING_FAILED
        assert cloud.operations == [COMMIT, READ, *[COMMIT] * 5, PUBLISH, MARK]
        assert sizes(cloud) == [10, 2, 2, 2, 2, 2]

    @pytest.mark.parametrize("takes_effect", [True, False])
    def test_outage_reports_all_and_the_next_invocation_settles_them(self, cloud: Cloud, takes_effect: bool) -> None:
        cloud.on("*", raises=CLOSED, calls=[1] if takes_effect else (), after=True)
        cloud.on("*", raises=CLOSED)
        assert cloud.deliver(*orders(TEN)) == reported(*messages(TEN))
        assert set(cloud.operations) == {COMMIT, READ}
        assert cloud.count(COMMIT) <= 16
        cloud.heal()
        assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
        assert [what for what, _ in cloud.history].count("committed") == 10
        assert sorted(cloud.notified()) == ids(TEN)

    def test_event_of_the_answer_that_is_lost_with_other_content_in_the_batch_is_a_conflict(self, cloud: Cloud) -> None:
        cloud.on(COMMIT, raises=CLOSED, after=True, calls=[1])
        batch = [*orders(range(3)), record("m-other", {"id": "o-1", "amount": 99})]
        assert cloud.deliver(*batch) == NOTHING_FAILED
        assert [letter.body for letter in cloud.dead_letters()] == ['{"id":"o-1","amount":99}']
        assert cloud.notified() == ["o-0", "o-1", "o-2"]


@pytest.mark.parametrize(
    ("operation", "after", "next_calls", "times_published"),
    [
        (COMMIT, False, [READ, COMMIT, PUBLISH, MARK], 1),
        (COMMIT, True, [READ, PUBLISH, MARK], 1),
        (PUBLISH, False, [READ, PUBLISH, MARK], 1),
        (PUBLISH, True, [READ, PUBLISH, MARK], 2),
        (MARK, False, [READ, PUBLISH, MARK], 2),
        (MARK, True, [READ], 1),
    ],
)
def test_batch_over_which_the_process_dies_is_settled_by_the_next(
    cloud: Cloud, operation: str, after: bool, next_calls: list[str], times_published: int
) -> None:
    cloud.on(operation, raises=Killed(), after=after, calls=[1])
    with pytest.raises(Killed):
        cloud.deliver(*orders(TEN))
    cloud.calls.clear()
    assert cloud.deliver(*orders(TEN, receive_count=2)) == NOTHING_FAILED
    assert cloud.operations == next_calls
    assert [what for what, _ in cloud.history].count("committed") == 10
    assert sorted(cloud.notified()) == sorted(ids(TEN) * times_published)
    assert cloud.statuses() == dict.fromkeys(ids(TEN), "sent")


# Time


class TestTimeBudget:
    @pytest.mark.parametrize("remaining_ms", [0, 7_499, 8_499])
    def test_no_transaction_starts_below_it(self, cloud: Cloud, remaining_ms: int) -> None:
        assert cloud.deliver(*orders(TEN), context=Context(cloud, remaining_ms)) == reported(*messages(TEN))
        assert cloud.operations == []

    def test_a_transaction_starts_with_enough_of_it(self, cloud: Cloud) -> None:
        """The longest call takes 7 s, the end 0.5 s, publishing and marking usually 0.5 s each."""
        assert cloud.deliver(*orders(TEN), context=Context(cloud, 8_500)) == NOTHING_FAILED

    def test_read_that_uses_it_up_leaves_new_events_for_later(self, cloud: Cloud) -> None:
        cloud.deliver(*orders(range(5)))
        cloud.forget()
        answer = cloud.deliver(*orders(TEN, receive_count=2), context=Context(cloud, 12_000, {READ: 4_000}))
        assert answer == reported(*messages(range(5, 10)))
        assert cloud.operations == [READ]

    def test_it_ends_between_two_tries_of_a_conflict(self, cloud: Cloud, logged: Logged) -> None:
        refuse_with(cloud, on_events({"o-3": ("TransactionConflict", "None")}))
        answer = cloud.deliver(*orders(TEN), context=Context(cloud, 15_900, {COMMIT: 1_700}))
        assert answer == reported("m-3")
        assert cloud.transactions == [ids(TEN), ids(others(TEN, 3)), ["o-3"]]
        assert cloud.operations == [COMMIT, COMMIT, COMMIT, PUBLISH, MARK]
        assert [reason for _message, _outcome, reason, _detail in logged()] == ["out-of-time"]

    def test_it_ends_while_the_culprit_is_sought(self, cloud: Cloud) -> None:
        whenever(cloud, "o-0", client_error("ValidationException"))
        answer = cloud.deliver(*orders(TEN), context=Context(cloud, 15_000, {COMMIT: 1_000, READ: 1_000}))
        # Ten, two and one fail and are read; o-1 is committed; then two seconds are kept to publish and mark it.
        assert cloud.transactions == [ids(TEN), ["o-0", "o-1"], ["o-0"], ["o-1"]]
        assert answer == reported(*messages(range(2, 10)))
        assert cloud.reasons() == ["refused-by-dynamodb"]
        assert cloud.statuses() == {"o-1": "sent"}
        cloud.heal()
        assert cloud.deliver(*orders(range(2, 10), receive_count=2)) == NOTHING_FAILED
        assert cloud.statuses() == dict.fromkeys(ids(range(1, 10)), "sent")

    def test_large_batch_settles_its_first_parts_and_reports_the_rest(self, cloud: Cloud) -> None:
        slow = {COMMIT: 1_000, PUBLISH: 500, MARK: 500}
        answer = cloud.deliver(*orders(range(200)), context=Context(cloud, 19_900, slow))
        # A part takes 4.5 s: 10.9 s are left for the third, too few for a long call and 3.5 s of settling.
        assert answer == reported(*messages(range(100, 200)))
        assert cloud.operations == [COMMIT, *[PUBLISH] * 5, MARK, MARK] * 2
        assert cloud.statuses() == dict.fromkeys(ids(range(100)), "sent")

    def test_slow_settling_counts_from_the_second_part_on(self, cloud: Cloud) -> None:
        slow = {COMMIT: 100, PUBLISH: 1_500}
        answer = cloud.deliver(*orders(range(100)), context=Context(cloud, 22_500, slow))
        # The first part took 7.6 s: 14.9 s are left, and 7.5 s beside the 7.5 s for settling are too few by 0.1 s.
        assert answer == reported(*messages(range(50, 100)))
        assert cloud.operations == [COMMIT, *[PUBLISH] * 5, MARK, MARK]

    @pytest.mark.parametrize("remaining_ms", [22_600, 22_700, 23_000])
    def test_second_part_is_settled_or_not_begun(self, cloud: Cloud, remaining_ms: int) -> None:
        """Once it is known how long that takes; else its notifications would go out twice."""
        slow = {COMMIT: 100, PUBLISH: 1_500}
        answer = cloud.deliver(*orders(range(100)), context=Context(cloud, remaining_ms, slow))
        settled = 100 - len(answer["batchItemFailures"])
        assert settled in (50, 100)
        assert cloud.statuses() == dict.fromkeys(ids(range(settled)), "sent")

    def test_nothing_of_a_batch_is_lost_over_many_short_invocations(self, cloud: Cloud) -> None:
        left = orders(range(120))
        for _ in range(3):
            answer = cloud.deliver(*left, context=Context(cloud, 14_000, {COMMIT: 1_000, PUBLISH: 1_000, MARK: 500}))
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            assert len(failed) == max(0, len(left) - 50)
            left = [message for message in left if message["messageId"] in failed]
        assert left == []
        assert cloud.statuses() == dict.fromkeys(ids(range(120)), "sent")
        assert sorted(cloud.notified()) == sorted(ids(range(120)))
