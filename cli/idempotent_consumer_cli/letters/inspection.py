"""What `inspect` has found, letter by letter and in sum."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.foresight.operation import to_do as to_do_about_operation
from idempotent_consumer_cli.foresight.prospect import Fate, LedgerState, Prospect
from idempotent_consumer_cli.foresight.workflow import DROP, RELEASE
from idempotent_consumer_cli.foresight.workflow import to_do as to_do_about_workflow
from idempotent_consumer_cli.letters.causes import Causes
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.lines import (
    dead_since_ms,
    difference_of,
    document,
    first_ms,
    foretell,
    in_words,
    name_of,
)
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.selection import WITHOUT_REASON
from idempotent_consumer_cli.rows.operation import standing_since_ms
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.words import age, count, in_order

_THROTTLED = "throttled, killed before it could write, or unable to start"


# For people; --json has all.
_MOST_EXECUTIONS = 10


@dataclass(frozen=True)
class Manner:
    """How the letters of one kind of consumer are shown.

    ledger: what their state is called. to_do: the command for a letter. is_operation: each stands in its state for
    some time, after some attempts.
    """

    ledger: str = "ledger"
    to_do: Callable[[Prospect, Letter], str] | None = None
    is_operation: bool = False


OF_PIPELINES = Manner()
OF_OPERATIONS = Manner(to_do=lambda prospect, letter: to_do_about_operation(prospect), is_operation=True)
OF_WORKFLOWS = Manner("claim", to_do_about_workflow)


class Inspection:
    """Shows letters as they come, with --json, or in a table at the end; it keeps no bodies.

    limit: how many are shown; None for all. receives: after how many SQS
    moves a message, where that is known. read: letters that were read, chosen or not. moved: message ids of those that
    SQS moved for a failure of their own.
    """

    def __init__(
        self,
        screen: Screen,
        *,
        is_fifo: bool,
        manner: Manner = OF_PIPELINES,
        limit: int | None,
        show_values: bool,
        receives: int | None,
    ) -> None:
        self._screen = screen
        self._is_fifo = is_fifo
        self._manner = manner
        self._limit = limit
        self._show_values = show_values
        self._receives = receives
        self._rows: list[Sequence[Any]] = []
        self._executions: list[str] = []
        self._by_reason: Counter[str | None] = Counter()
        self._by_state: Counter[LedgerState] = Counter()
        self._by_fate: Counter[Fate] = Counter()
        self._by_to_do: Counter[str] = Counter()
        self._in_question = 0
        self.read = 0
        self.moved: set[str] = set()
        self.moved_from_ms = 0

    @property
    def letters(self) -> int:
        """How many were chosen."""
        return self._by_fate.total()

    def add(self, opened: OpenedLetter, prospect: Prospect, now_ms: int) -> None:
        """now_ms: on SQS's clock."""
        letter = opened.letter
        to_do = self._manner.to_do(prospect, letter) if self._manner.to_do else None
        if self._limit is None or self.letters < self._limit:
            self._show(opened, prospect, to_do, now_ms)
        if to_do is not None:
            self._by_to_do[to_do] += 1
        self._in_question += prospect.fate is Fate.KEEP and to_do not in (DROP, RELEASE)
        self._by_reason[letter.reason] += 1
        self._by_state[prospect.state] += 1
        self._by_fate[prospect.fate] += 1
        if letter.reason is None and prospect.state is not LedgerState.BLOCKED:
            self.moved_from_ms = min(letter.sent_ms, self.moved_from_ms) if self.moved else letter.sent_ms
            self.moved.add(letter.message_id)

    def close(self, causes: Causes | None, remarks: Sequence[str], total: int) -> int:
        """Show the rest and the sums. total: letters in the queue, roughly, chosen or not. Returns the exit code."""
        why = _why(causes, self.moved) if causes is not None else []
        if causes is not None:
            remarks = [*remarks, *_log_remarks(causes, len(self.moved))]
        self._screen.emit(self._summary(why, remarks))
        if self._rows:
            self._screen.table("Dead letters", self._columns(), self._rows)
        for line in self._executions[:_MOST_EXECUTIONS]:
            self._screen.say(line)
        if self._limit is not None and self.letters > self._limit:
            self._screen.say(f"The first {self._limit:,} of {self.letters:,} are shown: --limit shows more.")
        if self.letters:
            reasons = {in_words(reason, self._receives): number for reason, number in self._by_reason.most_common()}
            self._screen.say(f"Reasons:  {_sum(reasons)}")
            states = _sum({state.value: n for state, n in in_order(self._by_state)})
            self._screen.say(f"{self._manner.ledger.capitalize() + ':':9} {states}")
            self._screen.say(f"A replay: {_sum({fate.value: n for fate, n in in_order(self._by_fate)})}")
        if why:
            self._screen.table("Why SQS moved them", ("reason", "detail", "letters"), why)
        for remark in remarks:
            self._screen.say(remark)
        self._screen.say(self._verdict(total))
        return 1 if self.letters or (total and not self.read) else 0

    def _show(self, opened: OpenedLetter, prospect: Prospect, to_do: str | None, now_ms: int) -> None:
        if self._screen.as_json:
            line = document(opened, prospect, now_ms, is_fifo=self._is_fifo, show_values=self._show_values)
            self._screen.emit(line if to_do is None else {**line, "to_do": to_do})
            return
        letter = opened.letter
        reason = in_words(letter.reason, self._receives) + (f": {letter.detail}" if letter.detail else "")
        decisive = prospect.decisive
        is_said = decisive is not None and letter.reason is not None and decisive.reason == letter.reason
        # Why a claim is kept now is not why it was.
        is_said &= prospect.fate is not Fate.KEEP
        difference = difference_of(decisive, show_values=self._show_values)
        row = [
            name_of(prospect),
            reason,
            letter.receive_count,
            age(now_ms, first_ms(opened, prospect)),
            age(now_ms, dead_since_ms(letter, is_fifo=self._is_fifo)),
            *([letter.group] if self._is_fifo else []),
            prospect.state.value,
            *(_standing(prospect) if self._manner.is_operation else []),
            foretell(prospect, with_detail=not is_said) + (f"; {difference}" if difference else ""),
        ]
        self._rows.append(row if to_do is None else [*row, to_do])
        if letter.execution is not None:
            self._executions.append(f"{name_of(prospect)}: {letter.execution}")

    def _columns(self) -> list[str]:
        group = ["group"] if self._is_fifo else []
        columns = ["event", "reason", "receives", "age", "dead for", *group, self._manner.ledger]
        standing = ["for", "attempt"] if self._manner.is_operation else []
        return [*columns, *standing, "a replay", *(["to do"] if self._manner.to_do else [])]

    def _summary(self, why: Sequence[tuple[str, str, int]], remarks: Sequence[str]) -> Mapping[str, Any]:
        return {
            "kind": "summary",
            "letters": self.letters,
            "read": self.read,
            "by_reason": {reason or WITHOUT_REASON: number for reason, number in self._by_reason.most_common()},
            "by_ledger": {state.code: number for state, number in in_order(self._by_state)},
            "by_replay": {fate.code: number for fate, number in in_order(self._by_fate)},
            "why": [{"reason": reason, "detail": detail, "letters": number} for reason, detail, number in why],
            "remarks": list(remarks),
        }

    def _verdict(self, total: int) -> str:
        if not self.read and total:
            return (
                f"The {count(total, 'letter')} could not be read: another run has them in hand. Try again in a minute."
            )
        if not self.read:
            return "The dead-letter queue is empty."
        if not self.letters:
            return f"None of the {count(self.read, 'letter')} is chosen."
        uncertain = self._by_fate[Fate.PARK]
        if uncertain:
            return (
                f"{count(self.letters, 'letter')}, {uncertain:,} of them for `resolve`: see at the provider first "
                "whether it was applied; then `replay` or `drop` the letter."
            )
        ran, did_not_run = self._by_to_do[DROP], self._by_to_do[RELEASE]
        if self._in_question or ran or did_not_run:
            return self._verdict_on_claims(ran, did_not_run)
        if self._by_fate[Fate.FAIL] == self.letters:
            return f"{count(self.letters, 'letter')} that would fail again: `resolve --retry`, or `drop` them."
        if self._by_fate[Fate.REFUSE] == self.letters:
            return f"{count(self.letters, 'letter')}, to be refused again: mend the cause first, or `drop` them."
        return f"{count(self.letters, 'letter')}: `replay` sends them back, `drop` deletes them."

    def _verdict_on_claims(self, ran: int, did_not_run: int) -> str:
        parts = [count(self.letters, "letter")]
        if self._in_question:
            parts[0] += (
                f", {self._in_question:,} of them with a claim that is kept: see first whether the effect ran; then "
                "`release` and `replay`, or `drop` the letter"
            )
        parts += [f"Of {ran:,} the effect ran: `drop`"] if ran else []
        parts += (
            [f"Of {did_not_run:,} it did not run, but the claim is kept: `release` and `replay`"] if did_not_run else []
        )
        return ". ".join(parts) + "."


def _standing(prospect: Prospect) -> list[Any]:
    """How long the operation of a letter has been in its state, and the number of its last attempt."""
    row = next((event.row for event in prospect.events if event.state is prospect.state and event.row), None)
    if row is None:
        return [None, None]
    now_ms = clock.now_ms()
    return [age(now_ms, standing_since_ms(row, now_ms)), row.attempt]


def _why(causes: Causes, moved: set[str]) -> list[tuple[str, str, int]]:
    """Reason, detail and number of letters, the most frequent first."""
    known = Counter((cause.reason, cause.detail) for cause in causes.by_message.values())
    why = [(reason, detail, number) for (reason, detail), number in known.most_common()]
    rest = len(moved) - len(causes.by_message)
    if not rest or causes.problem:
        return why
    if causes.anonymous:
        lines = ", ".join(f"{count(number, 'line')} {reason}" for reason, number in causes.anonymous.most_common())
        return [*why, ("named by lines without a message id", lines, rest)]
    stopped = f"the function was stopped for its timeout {count(causes.timeouts, 'time')}, or {_THROTTLED}"
    return [*why, ("no line in the log", stopped if causes.timeouts else _THROTTLED, rest)]


def _log_remarks(causes: Causes, moved: int) -> list[str]:
    unknown = count(moved - len(causes.by_message), "letter")
    remarks = [f"Why SQS moved {unknown} is not known: {causes.problem}."] if causes.problem else []
    if causes.is_partial:
        remarks.append("The log is longer than what was read of it: older causes may be missing.")
    return remarks


def _sum(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {what}" for what, number in counts.items())
