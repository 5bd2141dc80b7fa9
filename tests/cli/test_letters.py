"""Receiving, holding, deleting and giving back letters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.queues import Depth
from idempotent_consumer_cli.letters import queue as letters
from idempotent_consumer_cli.letters.letter import Letter, read_letter
from idempotent_consumer_cli.letters.queue import DeadLetters
from idempotent_consumer_cli.session import Session
from tests.cli.letters_support import Dead, deploy, text
from tests.cli.support import World, client_error


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Iterator[Dead]:
    dead = deploy(new_world, monkeypatch)
    dead.world.is_watching = True
    yield dead


@pytest.fixture
def fifo(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Iterator[Dead]:
    dead = deploy(new_world, monkeypatch, fifo=True)
    dead.world.is_watching = True
    yield dead


def reading(dead: Dead, visibility_seconds: int = 60, **options: Any) -> DeadLetters:
    return DeadLetters(Session().sqs, dead.world.dead_letter_url, visibility_seconds, **options)


def ids(pages: Iterator[list[Letter]]) -> list[list[str]]:
    return [[letter.message_id for letter in page] for page in pages]


def test_letters_come_in_pages_of_ten_each_once(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(23)]
    with reading(dead) as queue:
        assert queue.depth == Depth(visible=23, in_flight=0)
        assert ids(queue.pages()) == [sent[:10], sent[10:20], sent[20:]]
        assert (queue.in_hand, dead.visible) == (23, [])


def test_at_the_end_all_that_is_in_hand_is_given_back(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(12)]
    with reading(dead) as queue:
        list(queue.pages())
    assert dead.visible == sent
    assert [len(request["Entries"]) for request in dead.world.requests("ChangeMessageVisibilityBatch")] == [10, 2]


def test_an_interruption_gives_back_what_is_in_hand(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(3)]
    with pytest.raises(KeyboardInterrupt), reading(dead) as queue:
        next(queue.pages())
        raise KeyboardInterrupt
    assert dead.visible == sent


def test_what_cannot_be_given_back_hides_no_other_error(dead: Dead) -> None:
    dead.letter("a")
    dead.world.on("ChangeMessageVisibilityBatch", raises=client_error("ServiceUnavailable", "x"))
    with pytest.raises(KeyError), reading(dead) as queue:
        next(queue.pages())
        raise KeyError


def test_a_letter_is_asked_for_with_all_that_it_has_by_long_polling(
    dead: Dead, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(letters, "WAIT_SECONDS", 1)
    dead.letter("a")
    with reading(dead, 45) as queue:
        next(queue.pages())
    assert dead.world.requests("ReceiveMessage")[0] == {
        "QueueUrl": dead.world.dead_letter_url,
        "MaxNumberOfMessages": 10,
        "VisibilityTimeout": 45,
        "WaitTimeSeconds": 1,
        "AttributeNames": ["All"],
        "MessageAttributeNames": ["All"],
    }


def test_an_empty_answer_or_two_do_not_end_the_reading(dead: Dead) -> None:
    sent = [dead.letter("a")]
    dead.world.on("ReceiveMessage", answers={}, calls=[1, 2])
    with reading(dead) as queue:
        assert ids(queue.pages()) == [sent]
    assert len(dead.world.requests("ReceiveMessage")) == 6


def test_a_letter_that_came_after_the_run_began_is_not_taken(dead: Dead) -> None:
    newcomers: list[Letter] = []
    old = dead.letter("old")
    with reading(dead, on_newcomer=newcomers.append) as queue:
        queue.wait_for_newcomers()
        new = dead.letter("new")
        assert ids(queue.pages()) == [[old]]
        assert [letter.message_id for letter in newcomers] == [new]
    assert dead.visible == [old, new]


def test_newcomers_are_told_by_sqs_clock_not_by_this_machines(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now_ms", lambda: 0)
    old = dead.letter("old")
    with reading(dead) as queue:
        queue.wait_for_newcomers()
        dead.letter("new")
        assert ids(queue.pages()) == [[old]]


def test_the_clock_is_this_machines_where_an_answer_bears_no_date(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_date(request: Any, effect: Callable[[], Any]) -> Any:
        return {**effect(), "ResponseMetadata": {"HTTPHeaders": {}}}

    monkeypatch.setattr(clock, "now_ms", lambda: 4_000_000_000_000)
    dead.world.on("GetQueueAttributes", answers=without_date)
    old = dead.letter("old")
    with reading(dead) as queue:
        assert ids(queue.pages()) == [[old]]
        assert queue.now_ms() // 1000 == 4_000_000_000


def test_letters_that_keep_coming_do_not_keep_the_run_from_ending(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "FRUITLESS_ANSWERS", 7)
    old = dead.letter("old")
    with reading(dead) as queue:
        queue.wait_for_newcomers()
        dead.world.on("ReceiveMessage", runs=lambda: dead.letter("new"))
        assert ids(queue.pages()) == [[old]]
    assert len(dead.world.requests("ReceiveMessage")) == 8


def test_a_letter_that_comes_back_meanwhile_is_not_taken_again_and_is_hidden_for_longer(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(11)]
    with reading(dead, 60) as queue:
        pages = queue.pages()
        first = next(pages)
        dead.clock.sleep(61)
        rest = [letter.message_id for page in pages for letter in page]
        assert [letter.message_id for letter in first] + rest == sent
        assert dead.visible == []
    assert [request["VisibilityTimeout"] for request in dead.world.requests("ReceiveMessage")][:3] == [60, 60, 120]
    assert dead.visible == sent


def test_a_letter_is_never_hidden_for_longer_than_sqs_takes(dead: Dead) -> None:
    dead.letter("a")
    with reading(dead, 30_000) as queue:
        for _ in range(3):
            list(queue.pages())
            dead.clock.sleep(43_201)
    assert {request["VisibilityTimeout"] for request in dead.world.requests("ReceiveMessage")} == {30_000, 43_200}


@pytest.mark.parametrize("code", ["OverLimit", "AWS.SimpleQueueService.OverLimit"])
def test_sqs_limit_of_letters_in_flight_ends_the_reading(dead: Dead, code: str) -> None:
    sent = [dead.letter(f"{number}") for number in range(20)]
    dead.world.on("ReceiveMessage", raises=client_error(code, "ReceiveMessage"), calls=[2])
    with reading(dead) as queue:
        assert ids(queue.pages()) == [sent[:10]]
        assert queue.unread(10, is_fifo=False) == [
            "SQS gives out 120,000 letters at a time: those beyond were not read."
        ]


def test_with_long_polling_sqs_does_not_name_that_limit(dead: Dead, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letters, "MOST_IN_FLIGHT", 10)
    sent = [dead.letter(f"{number}") for number in range(20)]
    dead.world.on("ReceiveMessage", answers={}, calls=[2])
    with reading(dead) as queue:
        assert ids(queue.pages()) == [sent[:10]]
        assert queue.is_over_limit


def test_other_errors_of_receiving_are_raised(dead: Dead) -> None:
    dead.world.deny("ReceiveMessage")
    with reading(dead) as queue, pytest.raises(Exception, match="AccessDenied"):
        next(queue.pages())


# --- deleting


def test_deleted_letters_are_gone_and_no_others(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(12)]
    with reading(dead) as queue:
        list(queue.pages())
        queue.remove(sent[:11])
        assert queue.undeleted == 0
    assert dead.all == dead.visible == sent[11:]


def test_a_deletion_that_fails_in_part_is_repeated_for_what_failed(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(3)]

    def fail_second(request: Any, effect: Callable[[], Any]) -> Any:
        del request["Entries"][1]
        failed = {"Id": "1", "SenderFault": False, "Code": "InternalError"}
        return {**effect(), "Failed": [failed]}

    dead.world.on("DeleteMessageBatch", answers=fail_second, calls=[1])
    with reading(dead) as queue:
        list(queue.pages())
        queue.remove(sent)
        assert queue.undeleted == 0
    assert dead.all == []
    assert len(dead.world.requests("DeleteMessageBatch")) == 2


def test_what_an_answer_does_not_mention_is_not_taken_for_deleted(dead: Dead) -> None:
    sent = [dead.letter("a"), dead.letter("b")]
    dead.world.on("DeleteMessageBatch", answers={"Successful": [{"Id": "0"}]}, calls=[1])
    dead.world.on("DeleteMessageBatch", answers={})
    with reading(dead) as queue:
        list(queue.pages())
        queue.remove(sent)
        assert queue.undeleted == 1


def test_a_letter_that_withstood_is_deleted_once_it_is_received_again(dead: Dead) -> None:
    sent = [dead.letter("a")]
    refusal = {"Failed": [{"Id": "0", "SenderFault": True, "Code": "ReceiptHandleIsInvalid"}]}
    dead.world.on("DeleteMessageBatch", answers=refusal, calls=range(1, 6))
    with reading(dead) as queue:
        pages = queue.pages()
        next(pages)
        queue.remove(sent)
        assert queue.undeleted == 1
        dead.clock.sleep(61)
        assert ids(pages) == []
        assert queue.undeleted == 0
    assert dead.all == []


def test_at_the_end_what_was_to_be_deleted_is_tried_once_more(dead: Dead) -> None:
    sent = [dead.letter("a")]
    dead.world.on("DeleteMessageBatch", raises=KeyboardInterrupt(), calls=[1])
    with pytest.raises(KeyboardInterrupt), reading(dead) as queue:
        list(queue.pages())
        queue.remove(sent)
    assert dead.all == []


# --- letters in the hands of others


def test_a_patient_run_waits_for_letters_that_a_killed_one_had_in_hand(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(3)]
    dead.hold(2)
    with reading(dead, 60) as queue:
        assert queue.depth == Depth(visible=1, in_flight=2)
        read = [letter.message_id for page in queue.pages(is_patient=True) for letter in page]
        assert sorted(read) == sorted(sent)
    assert 50 < dead.clock.seconds <= 63


def test_a_patient_run_waits_no_longer_than_letters_are_hidden(dead: Dead) -> None:
    sent = [dead.letter(f"{number}") for number in range(3)]
    dead.hold(2, seconds=600)
    with reading(dead, 60) as queue:
        assert ids(queue.pages(is_patient=True)) == [sent[2:]]
        assert queue.unread(1, is_fifo=False) == [
            "1 of about 3 letters were read: another run has the others in hand, or had. Try again in a minute."
        ]
    assert 60 <= dead.clock.seconds <= 63


def test_a_patient_run_does_not_wait_once_the_other_has_deleted_them(dead: Dead) -> None:
    dead.letter("a")
    dead.hold(1)
    purge = partial(dead.world.sqs.purge_queue, QueueUrl=dead.world.dead_letter_url)
    dead.world.on("ReceiveMessage", runs=purge, calls=[1])
    with reading(dead, 60) as queue:
        assert ids(queue.pages(is_patient=True)) == []
        assert queue.unread(0, is_fifo=False) == []
    assert dead.clock.seconds == 0


def test_a_run_that_is_not_patient_reads_what_it_gets(dead: Dead) -> None:
    sent = [dead.letter("a"), dead.letter("b")]
    dead.hold(1)
    with reading(dead) as queue:
        assert ids(queue.pages()) == [sent[1:]]
    assert dead.clock.seconds == 0


def test_on_fifo_letters_behind_others_in_hand_are_said_to_be_unread(fifo: Dead) -> None:
    for number in range(25):
        fifo.letter(f"{number}", group="one")
    with reading(fifo) as queue:
        assert [len(page) for page in queue.pages()] == [10]
        assert queue.unread(10, is_fifo=True) == [
            "10 of about 25 letters were read: of a message group SQS gives out ten at most, until those are gone."
        ]


# --- one letter


def message(**changes: Any) -> dict[str, Any]:
    return {
        "MessageId": "m-1",
        "ReceiptHandle": "r-1",
        "Body": "{}",
        "Attributes": {"SentTimestamp": "1893553446000", "ApproximateReceiveCount": "6"},
        **changes,
    }


@pytest.mark.case("C10")
def test_a_letter_is_read_in_the_spelling_of_the_sqs_api() -> None:
    letter = read_letter(message())
    assert (letter.message_id, letter.body, letter.sent_ms, letter.receive_count) == ("m-1", "{}", 1893553446000, 6)
    assert (letter.reason, letter.detail, letter.group) == (None, None, None)


def test_attributes_are_kept_as_a_request_may_have_them() -> None:
    received = {
        "count": {"DataType": "Number.int", "StringValue": "1", "StringListValues": [], "BinaryListValues": []},
        "picture": {"DataType": "Binary.gif", "BinaryValue": b"\x00\xff"},
        "dead_letter_reason": text("id-blank"),
        "dead_letter_detail": text("id is blank"),
    }
    letter = read_letter(message(MessageAttributes=received))
    assert (letter.reason, letter.detail) == ("id-blank", "id is blank")
    assert letter.producers_attributes == {
        "count": {"DataType": "Number.int", "StringValue": "1"},
        "picture": {"DataType": "Binary.gif", "BinaryValue": b"\x00\xff"},
    }


def test_a_reason_on_a_letter_that_sqs_moved_is_of_an_earlier_stay() -> None:
    system = {"DeadLetterQueueSourceArn": "arn:aws:sqs:us-east-1:123456789012:orders"}
    letter = read_letter(message(Attributes=system, MessageAttributes={"dead_letter_reason": text("row-exists")}))
    assert letter.is_moved
    assert (letter.reason, letter.detail) == (None, None)


def test_the_same_bodies_have_the_same_digest() -> None:
    one, same, other = (read_letter(message(Body=body)).digest for body in ("ä", "ä", "a"))
    assert one == same != other
