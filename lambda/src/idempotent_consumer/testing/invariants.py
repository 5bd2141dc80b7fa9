"""What must hold after each run, whatever happened in it.

The order of events is never held against a plan: where a run committed them in another order than the undisturbed one
(a standard queue does so too), its tables are compared with what the same events give in that order, each once.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from idempotent_consumer.event import Event
from idempotent_consumer.plan import Action, AnyAction, Plan, Retry
from idempotent_consumer.rejection import Reject, Rejected
from idempotent_consumer.testing.events import Message
from idempotent_consumer.testing.problem import Finding, listed, shortened
from idempotent_consumer.testing.purity import Planned
from idempotent_consumer.testing.result import Heard
from idempotent_consumer.testing.run import Row, RowKey, Run

_REPORT = "the library is at fault: please report it, with this text and the plan"
_IMPURE = (
    "the plan looks at something that its event does not hold, and that the experiments before did not change (a file, "
    "the environment, what it planned long before), or the library is at fault"
)
# What a transaction can be refused for, whatever the plan says.
_REFUSALS = frozenset({"id-reused", "refused-by-dynamodb", "row-exists"})
_MEANT = (
    "mend what the plan writes; if it is meant, say so: raise Reject(…) in the plan, otherwise=Reject(…) on the write "
    "that fails, or the event's id in dead_letters="
)
_REFUSED = "a path into a map that is missing, an add to what is no number, or a key of another type than the table's"
_OWN = "event_committed_at"
_MOST_ROWS = 6


@dataclass(frozen=True, slots=True)
class Expectation:
    """run: the undisturbed one. reasons, waits: by label of what is an event, why its plan and the plan's conditions
    reject it, or let it wait."""

    run: Run
    reasons: Mapping[str, frozenset[str]]
    waits: Mapping[str, frozenset[str]]


def expectation(run: Run, planned: Sequence[Planned]) -> Expectation:
    plans = {each.label: each.plan for each in planned if isinstance(each.plan, Plan)}
    return Expectation(
        run,
        {each.label: _own_reasons(each.plan) for each in planned},
        {label: frozenset().union(*map(_waits, plan.writes)) for label, plan in plans.items()},
    )


def _own_reasons(plan: Plan | Rejected) -> frozenset[str]:
    return frozenset({plan.reason}) if isinstance(plan, Rejected) else frozenset().union(*map(_reasons, plan.writes))


def _reasons(action: Action) -> set[str]:
    assert isinstance(action, AnyAction)  # as Plan has checked
    if isinstance(action.otherwise, Reject):
        return {action.otherwise.reason}
    return {"condition-failed"} if action.condition is not None and action.otherwise is None else set()


def _waits(action: Action) -> set[str]:
    assert isinstance(action, AnyAction)
    return {action.otherwise.why} if isinstance(action.otherwise, Retry) else set()


def check_settled(run: Run, expected: Expectation, messages: Sequence[Message]) -> None:
    """Each event is settled once, in the right way; nothing is lost. Raises Finding."""
    twice = [event_id for event_id, count in Counter(run.history.committed).items() if count > 1]
    if twice:
        raise _finding(f"{listed(twice)} was committed more than once", run, likely=_REPORT)
    if run.history.unheard:
        unheard = listed(run.history.unheard)
        raise _finding(f"{unheard} was marked as sent before its notification was published", run, likely=_REPORT)
    if run.lost:
        raise _finding(
            f"the message of {listed(run.lost)} was deleted, though it is neither settled nor dead-lettered",
            run,
            likely=_REPORT,
        )
    _check_left(run, expected)
    _check_letters(run, expected, messages)
    _check_ledger(run)


def check_dead_letters(expected: Expectation, meant: Collection[str]) -> None:
    """Of what the undisturbed run dead-letters, the plan, the producer or `meant` is the reason. Raises Finding."""
    dead = {label: verdict for label, verdict in expected.run.verdicts.items() if verdict.outcome.is_dead}
    if alive := [label for label in meant if label not in dead]:
        raise Finding(f"{listed(alive)} is in dead_letters=, but is not dead-lettered")
    unmeant = [
        f"{label} would be dead-lettered as {verdict.reason}: {verdict.detail}"
        for label, verdict in dead.items()
        if label in expected.reasons and label not in meant
        if verdict.reason not in {*expected.reasons[label], "id-reused"}
    ]
    if unmeant:
        likely = _REFUSED if "refused-by-dynamodb" in unmeant[0] else ""
        raise Finding(unmeant[0], unmeant[1:_MOST_ROWS], likely=likely, instead=_MEANT)


def check_same(run: Run, other: Run, *, what: str) -> None:
    """Tables and notifications are those of another run, which `what` names. Raises Finding."""
    lines = [line for table in other.tables for line in _table(table, run.tables[table], other.tables[table])]
    if lines:
        more = [f"and {len(lines) - _MOST_ROWS} more"] if len(lines) > _MOST_ROWS else []
        headline = f"the tables are not those of {what}"
        raise _finding(headline, run, [*lines[:_MOST_ROWS], *more], likely=_IMPURE)
    heard, others = _texts(run.history.heard), _texts(other.history.heard)
    missing = [f"never heard: {text}" for text in others if text not in heard]
    added = [f"not expected: {text}" for text in heard if text not in others]
    if missing or added:
        raise _finding(f"the notifications are not those of {what}", run, [*missing, *added], likely=_IMPURE)


def _check_left(run: Run, expected: Expectation) -> None:
    for message in run.left:
        verdicts = run.last.get(message.id, {})
        reported = {label: verdict for label, verdict in verdicts.items() if verdict.outcome.is_reported}
        if verdicts and not reported:
            raise _finding(f"the message of {listed(message.labels)} comes back without end", run, likely=_REPORT)
        for label, verdict in reported.items():
            if verdict.reason == "group-blocked" or verdict.reason in expected.waits.get(label, ()):
                continue
            raise _finding(
                f"{label} cannot be settled: {verdict.reason}",
                run,
                [verdict.detail] if verdict.detail else [],
                likely="the plan makes no sense to the library" if verdict.reason == "plan-invalid" else "",
            )


def _check_ledger(run: Run) -> None:
    settled = {*run.history.committed, *run.history.superseded}
    wrong = [
        f"{event_id}: {run.statuses.get(event_id, 'no row')}, not {'sent' if event_id in settled else 'without a row'}"
        for event_id in dict.fromkeys([*sorted(settled), *run.statuses])
        if (run.statuses.get(event_id) == "sent") != (event_id in settled)
    ]
    if wrong:
        raise _finding("the ledger is not as it has to be", run, wrong, likely=_REPORT)


def _check_letters(run: Run, expected: Expectation, messages: Sequence[Message]) -> None:
    by_body = {message.body: message for message in messages}
    for letter in run.history.letters:
        message = by_body.get(letter.body)
        if message is None:
            raise _finding("a message that nobody sent is in the dead-letter queue", run, likely=_REPORT)
        event = message.events[0].event
        committed = run.history.committed[: letter.committed_before]
        is_known = isinstance(event, Event) and event.id in committed and run.history.is_of(event)
        if is_known and len(message.events) == 1:
            raise _finding(f"{message.labels[0]} was committed, and dead-lettered after it", run, likely=_REPORT)
        reasons = sorted({reason for label in message.labels for reason in _reasons_of(label, expected)})
        if letter.reason not in reasons:
            headline = f"{listed(message.labels)} was dead-lettered as {letter.reason}, not as {listed(reasons)}"
            raise _finding(headline, run, likely=_IMPURE)
    buried = {letter.body for letter in run.history.letters}
    for message in messages:
        missing = [label for label in message.labels if label in expected.run.dead_by_plan]
        if missing and message.body not in buried:
            raise _finding(f"{listed(missing)} is not in the dead-letter queue", run, likely=_IMPURE)


def _reasons_of(label: str, expected: Expectation) -> Collection[str]:
    if label in expected.run.dead_by_plan:
        return (expected.run.verdicts[label].reason,)
    return _REFUSALS | expected.reasons.get(label, frozenset())


def _table(table: str, found: Mapping[RowKey, Row], expected: Mapping[RowKey, Row]) -> list[str]:
    lines: list[str] = []
    for key in dict.fromkeys([*expected, *found]):
        where = f"{table} {', '.join(map(repr, key))}"
        if key not in found:
            lines.append(f"{where}: the row is missing")
        elif key not in expected:
            lines.append(f"{where}: the row should not be there")
        else:
            lines += [
                f"{where}: {name} is {_shown(found[key], name)}, not {_shown(expected[key], name)}"
                for name in dict.fromkeys([*expected[key], *found[key]])
                if name != _OWN and not _is_same(found[key], expected[key], name)
            ]
    return lines


def _is_same(one: Row, other: Row, name: str) -> bool:
    values = one.get(name, ...), other.get(name, ...)
    return type(values[0]) is type(values[1]) and values[0] == values[1]


def _shown(row: Row, name: str) -> str:
    return shortened(repr(row[name])) if name in row else "missing"


def _texts(heard: Sequence[Heard]) -> list[str]:
    texts = (f"{each.event_id}: {each.message!r} {dict(sorted(each.attributes.items()))!r}" for each in heard)
    return list(dict.fromkeys(texts))


def _finding(headline: str, run: Run, details: Sequence[str] = (), *, likely: str) -> Finding:
    return Finding(headline, [f"when {run.scenario}", *details], likely=likely)
