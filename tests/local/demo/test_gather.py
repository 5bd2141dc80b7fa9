"""From what was seen of a run to the story of each event: a small run, by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from local.audit import Found, Row, audit
from local.call_log import Call, Handed, Logged
from local.demo.gather import Seen, meanings, record_of
from local.demo.record import Change, Delivery, Kill, Kind, Outcome, Record, Theme, figures
from local.traffic import Traffic
from local.watching import Heard

KILLED = "Worker process died"
ROWS, PUBLISHED, MARKED, DEAD = Change.ROWS, Change.PUBLISHED, Change.MARKED, Change.DEAD_LETTER
DONE = (ROWS, PUBLISHED, MARKED)


def body(event_id: str, total: int = 1) -> str:
    return json.dumps({"id": event_id, "total": total})


def handed(message_id: str, text: str, sent_ms: int, receives: int = 1) -> Handed:
    return Handed(message_id, text, sent_ms, receives)


def pending(event_id: str, message_id: str, at_ms: int) -> Row:
    return {"event_id": event_id, "message_id": message_id, "status": "pending", "created_at": at_ms}


def sent(event_id: str, message_id: str, at_ms: int) -> Row:
    return {"event_id": event_id, "message_id": message_id, "status": "sent", "created_at": 0, "sent_at": at_ms}


def record(
    events: list[str],
    batches: list[list[str]],
    calls: list[Call],
    writes: list[Row],
    heard: list[tuple[str, int]],
    **more: object,
) -> Record:
    """What is made of a run; `more`: poison, impostors, late, dead_letters."""
    traffic = Traffic(
        events={name: body(name) for name in events},
        batches=batches,
        late=more.get("late", []),  # type: ignore[arg-type]
        poison=more.get("poison", []),  # type: ignore[arg-type]
        impostors=more.get("impostors", []),  # type: ignore[arg-type]
    )
    settled = [row for row in writes if row["status"] == "sent"]
    found = Found([], settled, [], more.get("dead_letters", []), events, events)  # type: ignore[arg-type]
    seen = Seen(
        calls=calls,
        kills=[(1350, 5)],
        heard=[Heard(name, "", at_ms) for name, at_ms in heard],
        found=found,
        commits=[row for row in writes if row["status"] == "pending"],
        meanings={"bad-json": "is not JSON", "id-reused": "is taken"},
    )
    return record_of(traffic, seen, audit(traffic, found), {"Applied": 1}, 90.0)


def told(made: Record, event_id: str) -> list[tuple[Kind, Outcome, tuple[Change, ...]]]:
    (story,) = (story for story in made.stories if story.event_id == event_id)
    return [(each.kind, each.outcome, tuple(each.changes)) for each in story.deliveries]


def test_an_event_that_is_delivered_once_is_applied() -> None:
    made = record(
        ["a"],
        [[body("a")]],
        [Call(1100, 1200, (handed("m1", body("a"), 1000),))],
        [pending("a", "m1", 1150), sent("a", "m1", 1170)],
        [("a", 1160)],
    )
    (story,) = made.stories
    assert (story.theme, story.rows, story.notified, story.sent) == (Theme.ONCE, 1, 1, 1)
    assert list(story.deliveries) == [
        Delivery(
            at=0.1, sent_at=0.0, call=1, message=1, receive=1, kind=Kind.FIRST, outcome=Outcome.APPLIED, changes=DONE
        )
    ]
    assert list(made.kills) == [Kill(0.35, 5)]
    assert f"{made.began:%Y-%m-%d %H:%M:%S.%f}" == "1970-01-01 00:00:01.000000"


def test_a_later_send_is_a_duplicate_that_changes_nothing() -> None:
    made = record(
        ["a"],
        [[body("a")], [body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),)),
            Call(1300, 1400, (handed("m2", body("a"), 1250),)),
        ],
        [pending("a", "m1", 1150), sent("a", "m1", 1170)],
        [("a", 1160)],
    )
    assert made.stories[0].theme is Theme.RESENT
    assert told(made, "a") == [(Kind.FIRST, Outcome.APPLIED, DONE), (Kind.AGAIN, Outcome.DUPLICATE, ())]
    assert not made.stories[0].deliveries[1].is_beside


def test_of_twins_in_one_call_one_works() -> None:
    made = record(
        ["a"],
        [[body("a"), body("a")]],
        [Call(1100, 1200, (handed("m1", body("a"), 1000), handed("m2", body("a"), 1000)))],
        [pending("a", "m1", 1150), sent("a", "m1", 1170)],
        [("a", 1160)],
    )
    assert made.stories[0].theme is Theme.TWINS
    assert told(made, "a") == [(Kind.FIRST, Outcome.APPLIED, DONE), (Kind.TWIN, Outcome.DUPLICATE, ())]
    assert made.stories[0].deliveries[1].is_beside


# What a killed call had done by its end, from the times of the row and the notification, and what the next one did.
CUT = {
    "before it wrote": ([pending("a", "m1", 1550)], [("a", 1560)], (), (Outcome.APPLIED, DONE)),
    "after the rows": ([pending("a", "m1", 1150)], [("a", 1560)], (ROWS,), (Outcome.RESUMED, (PUBLISHED, MARKED))),
    "after publishing": (
        [pending("a", "m1", 1150)],
        [("a", 1160), ("a", 1560)],
        (ROWS, PUBLISHED),
        (Outcome.RESUMED, (PUBLISHED, MARKED)),
    ),
    "with a call for publishing on its way": (
        [pending("a", "m1", 1150)],
        [("a", 1205), ("a", 1560)],
        (ROWS, PUBLISHED),
        (Outcome.RESUMED, (PUBLISHED, MARKED)),
    ),
}


@pytest.mark.parametrize("case", CUT)
def test_what_a_killed_call_had_done_follows_from_the_times(case: str) -> None:
    writes, heard, before, (outcome, after) = CUT[case]
    made = record(
        ["a"],
        [[body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),), error=KILLED),
            Call(1500, 1600, (handed("m1", body("a"), 1000, 2),), counts={"Resumed": 1}),
        ],
        [*writes, sent("a", "m1", 1570)],
        heard,
    )
    assert made.stories[0].theme is Theme.KILLED
    assert told(made, "a") == [(Kind.FIRST, Outcome.CUT_OFF, before), (Kind.AFTER_KILL, outcome, after)]


def test_a_call_that_was_killed_before_its_answer_had_done_all() -> None:
    made = record(
        ["a"],
        [[body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),), error=KILLED),
            Call(1500, 1600, (handed("m1", body("a"), 1000, 2),), counts={"Duplicates": 1}),
        ],
        [pending("a", "m1", 1150), sent("a", "m1", 1170)],
        [("a", 1160)],
    )
    assert told(made, "a") == [(Kind.FIRST, Outcome.CUT_OFF, DONE), (Kind.AFTER_KILL, Outcome.DUPLICATE, ())]


def test_another_message_of_the_event_may_resume_it() -> None:
    """The ledger row then names that one, and the change stream still has who committed."""
    made = record(
        ["a"],
        [[body("a")], [body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),), error=KILLED),
            Call(1300, 1400, (handed("m2", body("a"), 1250),), counts={"Resumed": 1}),
            Call(1500, 1600, (handed("m1", body("a"), 1000, 2),), counts={"Duplicates": 1}),
        ],
        [pending("a", "m1", 1150), sent("a", "m2", 1370)],
        [("a", 1360)],
    )
    assert told(made, "a") == [
        (Kind.FIRST, Outcome.CUT_OFF, (ROWS,)),
        (Kind.AGAIN, Outcome.RESUMED, (PUBLISHED, MARKED)),
        (Kind.AFTER_KILL, Outcome.DUPLICATE, ()),
    ]


def test_of_two_calls_that_meet_the_counts_tell_which_resumed() -> None:
    """Both publish and the first one's mark stays; that the second resumed, its own count says."""

    def meeting(counts: Mapping[str, int]) -> Record:
        return record(
            ["a"],
            [[body("a")], [body("a")]],
            [
                Call(1100, 1300, (handed("m1", body("a"), 1000),), counts={"Applied": 1}),
                Call(1150, 1350, (handed("m2", body("a"), 1050),), counts=counts),
            ],
            [pending("a", "m1", 1140), sent("a", "m1", 1250)],
            [("a", 1240), ("a", 1320)],
        )

    assert told(meeting({"Resumed": 1}), "a")[1] == (Kind.AGAIN, Outcome.RESUMED, (PUBLISHED,))
    assert told(meeting({"Duplicates": 1}), "a")[1] == (Kind.AGAIN, Outcome.DUPLICATE, ())


def test_a_call_resumes_no_more_events_than_it_counts_and_none_that_was_settled_before() -> None:
    """The second call finds `a` settled, marks `b` itself, resumes `c` beside the first call, and reads `d` as sent."""
    names = ["a", "b", "c", "d"]
    first = [handed(f"{name}1", body(name), 1000) for name in names]
    again = [handed(f"{name}2", body(name), 1050) for name in names]
    made = record(
        names,
        [[body(name) for name in names]] * 2,
        [
            Call(1100, 1300, tuple(first), counts={"Applied": 4}),
            Call(1150, 1350, tuple(again), counts={"Resumed": 2, "Duplicates": 2}),
        ],
        [
            *(pending(name, f"{name}1", 1110) for name in names),
            sent("a", "a1", 1140),
            sent("b", "b2", 1340),
            sent("c", "c1", 1250),
            sent("d", "d1", 1200),
        ],
        [*(("a", at_ms) for at_ms in (1120, 1160, 1170, 1180)), ("b", 1330), ("c", 1240), ("c", 1320), ("d", 1130)],
    )
    assert [told(made, name)[1][1] for name in names] == [
        Outcome.DUPLICATE,
        Outcome.RESUMED,
        Outcome.RESUMED,
        Outcome.DUPLICATE,
    ]


def test_each_notification_goes_to_a_call_that_can_have_published_it() -> None:
    """The first fits both calls, the second only the longer one."""
    made = record(
        ["a"],
        [[body("a"), body("a")]],
        [
            Call(1100, 1400, (handed("m1", body("a"), 1000),), counts={"Resumed": 1}),
            Call(1101, 1300, (handed("m2", body("a"), 1000),), counts={"Applied": 1}),
        ],
        [pending("a", "m2", 1150), sent("a", "m2", 1270)],
        [("a", 1260), ("a", 1360)],
    )
    assert told(made, "a") == [(Kind.FIRST, Outcome.RESUMED, (PUBLISHED,)), (Kind.TWIN, Outcome.APPLIED, DONE)]


def test_a_logged_reason_goes_with_its_outcome_and_a_retry_comes_back() -> None:
    made = record(
        ["a"],
        [[body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),), logged={"m1": Logged("retry", "throttled")}),
            Call(1500, 1600, (handed("m1", body("a"), 1000, 2),)),
        ],
        [pending("a", "m1", 1550), sent("a", "m1", 1570)],
        [("a", 1560)],
    )
    assert made.stories[0].theme is Theme.RETURNED
    assert told(made, "a") == [(Kind.FIRST, Outcome.RETRY, ()), (Kind.RETURNED, Outcome.APPLIED, DONE)]
    assert made.stories[0].deliveries[0].reason == "throttled"


def test_a_call_that_failed_by_itself_says_how() -> None:
    made = record(["a"], [[body("a")]], [Call(1, 2, (handed("m1", body("a"), 0),), error="Task timed out")], [], [])
    (delivery,) = made.stories[0].deliveries
    assert (delivery.outcome, delivery.reason) == (Outcome.FAILED, "Task timed out")


def test_another_content_under_the_same_id_is_a_dead_letter() -> None:
    other = body("a", 1_000_000)
    made = record(
        ["a"],
        [[body("a")]],
        [
            Call(1100, 1200, (handed("m1", body("a"), 1000),)),
            Call(1300, 1400, (handed("m2", other, 1250),), logged={"m2": Logged("conflict", "id-reused")}),
        ],
        [pending("a", "m1", 1150), sent("a", "m1", 1170)],
        [("a", 1160)],
        late=[[other]],
        impostors=[other],
        dead_letters=[(other, "id-reused")],
    )
    assert made.stories[0].theme is Theme.IMPOSTOR
    assert told(made, "a") == [(Kind.FIRST, Outcome.APPLIED, DONE), (Kind.OTHER, Outcome.CONFLICT, (DEAD,))]
    (letter,) = made.dead_letters
    assert (letter.body, letter.reason, letter.meaning, letter.copies) == (other, "id-reused", "is taken", 1)
    assert [each.at for each in letter.deliveries] == [0.3]


def test_poison_is_a_dead_letter_and_no_event() -> None:
    poison = '{"id": "x", '
    made = record(
        [],
        [[poison]],
        [
            Call(1100, 1200, (handed("m1", poison, 1000),), error=KILLED),
            Call(1500, 1600, (handed("m1", poison, 1000, 2),), logged={"m1": Logged("rejected", "bad-json")}),
        ],
        [],
        [],
        poison=[poison],
        dead_letters=[(poison, "bad-json"), (poison, "bad-json")],
    )
    assert made.stories == []
    (letter,) = made.dead_letters
    assert (letter.body, letter.meaning, letter.copies) == (poison, "is not JSON", 2)
    assert [(each.kind, each.outcome) for each in letter.deliveries] == [
        (Kind.FIRST, Outcome.CUT_OFF),
        (Kind.AFTER_KILL, Outcome.REJECTED),
    ]
    assert made.deliveries == letter.deliveries


def test_a_run_without_any_delivery_has_a_record() -> None:
    made = record(["a"], [[body("a")]], [], [], [])
    assert (made.deliveries, made.stories) == ([], [])


def test_each_reason_of_the_page_about_them_has_its_meaning() -> None:
    text = "| reason | what is wrong |\n|---|---|\n| `bad-json` | the `body` is not JSON |\n| `id-blank` | blank |\n"
    assert meanings(text) == {"bad-json": "the body is not JSON", "id-blank": "blank"}


def test_the_figures_mark_what_should_be_nothing() -> None:
    report = audit(Traffic({}, [], [], [], []), Found([], [], [], [], [], []))
    assert [figure.name for figure in figures(report, {}, 0, 1.0) if figure.is_bad] == []
    unclean = replace(report, lost=2, doubled=1)
    assert [(f.name, f.value) for f in figures(unclean, {}, 0, 1.0) if f.is_bad] == [("lost", "2"), ("doubled", "1")]
