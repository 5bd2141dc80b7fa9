"""Sends letters back, says before what will happen to each, and follows what becomes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from idempotent_consumer_cli import clock
from idempotent_consumer_cli.consumer.discovery import Consumer
from idempotent_consumer_cli.foresight.foreteller import Foreteller
from idempotent_consumer_cli.foresight.prospect import Fate, Prospect
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.lines import (
    document,
    first_ms,
    foretell,
    name,
    name_of,
    other_fates,
    outcome_document,
)
from idempotent_consumer_cli.letters.opened import OpenedLetter
from idempotent_consumer_cli.letters.outcome import Became, Followed, Outcomes, Statuses
from idempotent_consumer_cli.letters.queue import DeadLetters, give_back
from idempotent_consumer_cli.letters.selection import Selection
from idempotent_consumer_cli.letters.sending import Sender
from idempotent_consumer_cli.screen import Bar, Screen
from idempotent_consumer_cli.words import count, in_order, listed, spoken

_WOULD_BE_REFUSED = "would be refused again"
_WOULD_COME_BACK = "would come straight back: settle it with `resolve` first"
_BEYOND_WINDOW = "may have been applied before the ledger forgot it: --beyond-window sends it"
_NOT_SENT = "could not be sent"
_HIDDEN = "Of a message group SQS shows ten letters at a time: one that was refused again may stand behind ten others."
# How many of those that are not done are listed.
_MOST_LISTED = 100
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 3.0

_Foretold = tuple[OpenedLetter, Prospect]


@dataclass(frozen=True)
class Policy:
    """See the options of `replay`."""

    skip_refused: bool = False
    beyond_window: bool = False
    dry_run: bool = False
    is_quiet: bool = False
    is_waiting: bool = False

    @property
    def is_followed(self) -> bool:
        """Whether it is told what became of each letter."""
        return self.is_waiting and not self.dry_run

    def why_left(self, prospect: Prospect) -> str | None:
        """Why a letter is left where it is; None where it is sent."""
        if prospect.stays:
            return prospect.stays
        if prospect.is_beyond_window and not self.beyond_window:
            return _BEYOND_WINDOW
        if prospect.fate.comes_back and self.skip_refused:
            return _WOULD_BE_REFUSED if prospect.fate is Fate.REFUSE else _WOULD_COME_BACK
        return None


@dataclass(frozen=True)
class Source:
    """Where the letters come from.

    settle: hears which have been sent, and deletes or notes them. unsettled: of how many that failed. total: how many
    there are, roughly; None for a file.
    """

    pages: Iterator[list[Letter]]
    settle: Callable[[Iterable[str]], None]
    unsettled: Callable[[], int]
    total: int | None = None


class Replay:
    """One run. read, sent: letters so far."""

    def __init__(
        self,
        consumer: Consumer,
        foreteller: Foreteller,
        ledger: Statuses,
        sender: Sender,
        screen: Screen,
        selection: Selection,
        policy: Policy,
    ) -> None:
        self._consumer = consumer
        self._sender = sender
        self._screen = screen
        self._selection = selection
        self._policy = policy
        self._foreteller = foreteller
        self._outcomes = Outcomes(ledger, self._tell, has_effects=not consumer.is_pipeline)
        self._fates: Counter[Fate] = Counter()
        self._left: Counter[str] = Counter()
        self._undone: list[Followed] = []
        self._remarks: list[str] = []
        self._unread: list[str] = []
        self.read = 0
        self.sent = 0

    def come_back(self, letter: Letter) -> None:
        """A letter that came into the dead-letter queue after the run began."""
        self._outcomes.come_back(letter)

    def run(self, source: Source, dead: DeadLetters) -> None:
        """Send all chosen letters."""
        with self._screen.progress("Looking" if self._policy.dry_run else "Replaying", source.total) as bar:
            for page in source.pages:
                sendable = self._foretell(page, dead.now_ms())
                if not self._policy.dry_run:
                    self._send(sendable, source, dead, bar)
                self.read += len(page)
                self._follow(bar, source)

    def wait(self, dead: DeadLetters, timeout: int) -> int:
        """Ask the ledger and the dead-letter queue until it is known what became of each letter, or for `timeout`
        seconds. Returns of how many it is not known then.
        """
        give_back(dead, self._screen)
        deadline, pause = clock.monotonic() + timeout, _FIRST_PAUSE_SECONDS
        with self._screen.progress("Waiting", self.sent) as bar:
            self._outcomes.ask()
            while self._outcomes.open and clock.monotonic() < deadline:
                dead.look()
                self._outcomes.ask()
                bar.update(self.sent - self._outcomes.open, self.sent, listed(self._outcomes.counts))
                clock.sleep(pause)
                pause = min(_LONGEST_PAUSE_SECONDS, 1.5 * pause)
        self._outcomes.give_up()
        under_way = self._outcomes.counts[Became.UNDER_WAY]
        if under_way and self._consumer.is_fifo:
            self.remark(_HIDDEN)
        return under_way

    def note_unread(self, dead: DeadLetters) -> None:
        """Note letters of the queue that were not read. To be called when the reading has ended."""
        self._unread = dead.unread(self.read, is_fifo=self._consumer.is_fifo)
        self._remarks += self._unread

    def remark(self, text: str) -> None:
        """Something that leaves the replay undone."""
        self._remarks.append(text)

    def how_far(self, dead: DeadLetters, source: Source) -> str:
        """What is done, for one who stops."""
        done, unsettled = count(self.sent, "letter"), source.unsettled()
        if source.total is None:
            noted = f", {unsettled:,} of them not noted" if unsettled else ", and noted"
            return f"{done} sent{noted}. Run it again to go on."
        kept = f", {unsettled:,} of them not deleted" if unsettled else " and deleted"
        left = max(0, dead.depth.total - self.sent + unsettled)
        waiting = (
            f" Of {count(self._outcomes.open, 'letter')} it is not known what became." if self._outcomes.open else ""
        )
        return f"{done} sent{kept}; about {left:,} are left in the dead-letter queue. Run it again to go on.{waiting}"

    def close(self, dead: DeadLetters) -> int:
        """Give back what is left, and show the sums; returns the exit code."""
        give_back(dead, self._screen)
        if dead.undeleted:
            self._remarks.append(
                f"{count(dead.undeleted, 'letter')} sent, but not deleted: the next replay sends them once more, which "
                "the ledger absorbs."
            )
        self._remarks += self._selection.unmet_remarks(is_all_read=not self._unread)
        outcomes = self._outcomes.counts
        # With --wait it is known what became of these.
        to_come_back = 0 if self._policy.is_followed else sum(self._fates[fate] for fate in Fate if fate.comes_back)
        if to_come_back:
            todo = "mend the cause first" if self._consumer.is_pipeline else "`inspect` says what to do first"
            self._remarks.append(f"{count(to_come_back, 'letter')} will come back to the dead-letter queue: {todo}.")
        is_done = not (self._left or self._remarks or any(outcomes[became] for became in Became if became.is_undone))
        self._screen.emit(self._summary(is_done))
        self._say_sums()
        return 0 if is_done else 1

    def _foretell(self, page: list[Letter], now_ms: int) -> list[_Foretold]:
        sendable = []
        for each, prospect in self._foreteller.foretell(
            page, now_ms, self._selection.takes, lambda prospect: self._policy.why_left(prospect) is not None
        ):
            why_left = self._policy.why_left(prospect)
            self._announce(each, prospect, why_left, now_ms)
            if why_left is None:
                self._fates[prospect.fate] += 1
                sendable.append((each, prospect))
            else:
                self._left[why_left] += 1
        return sendable

    def _announce(self, opened: OpenedLetter, prospect: Prospect, why_left: str | None, now_ms: int) -> None:
        if self._policy.is_quiet:
            return
        if self._screen.as_json:
            line = document(opened, prospect, now_ms, is_fifo=self._consumer.is_fifo)
            self._screen.emit({**line, "left": why_left})
            return
        age = (now_ms - first_ms(opened, prospect)) / 1000
        old = f", {spoken(age)} old" if age > self._consumer.window_seconds else ""
        what = foretell(prospect) if why_left is None else f"is left, it {why_left}{other_fates(prospect)}"
        self._screen.say(f"{name_of(prospect)}{old}: {what}")

    def _send(self, foretold: list[_Foretold], source: Source, dead: DeadLetters, bar: Bar) -> None:
        of_message = {opened.letter.message_id: (opened, prospect) for opened, prospect in foretold}
        if foretold:
            dead.wait_for_newcomers()
        for batch in self._sender.batches([opened.letter for opened, _ in foretold]):
            failures = self._sender.send(batch)
            sent = [letter.message_id for letter in batch if letter.message_id not in failures]
            self.sent += len(sent)
            source.settle(sent)
            if self._policy.is_followed:
                for message_id in sent:
                    self._outcomes.follow(*of_message[message_id])
            for message_id, why in failures.items():
                self._fail(of_message[message_id][1], why)
            self._follow(bar, source)

    def _fail(self, prospect: Prospect, why: str) -> None:
        self._fates[prospect.fate] -= 1
        self._left[_NOT_SENT] += 1
        self._screen.say(f"{name_of(prospect)}: not sent ({why})")
        self._screen.emit({"kind": "failure", "message_id": prospect.message_id, "reason": why})

    def _follow(self, bar: Bar, source: Source) -> None:
        total = None if source.total is None else max(self.read, self.sent, source.total)
        done = f"{self.sent:,} sent" if not self._policy.dry_run else f"{self._fates.total():,} chosen"
        bar.update(max(self.read, self.sent), total, f"{done}, {self._left.total():,} left")

    def _tell(self, followed: Followed) -> None:
        if not self._policy.is_quiet:
            why = f": {followed.reason}" if followed.reason else ""
            self._screen.emit(outcome_document(followed))
            self._screen.say(f"{name(followed.event_ids, followed.message_id)} {followed.became.value}{why}")
        if followed.became.is_undone and len(self._undone) < _MOST_LISTED:
            self._undone.append(followed)

    def _summary(self, is_done: bool) -> dict[str, object]:
        return {
            "kind": "summary",
            "dry_run": self._policy.dry_run,
            "read": self.read,
            "sent": self.sent,
            "by_replay": {fate.code: number for fate, number in in_order(self._fates)},
            "left": dict(self._left),
            "outcomes": {became.code: number for became, number in in_order(self._outcomes.counts)},
            "remarks": self._remarks,
            "done": is_done,
        }

    def _say_sums(self) -> None:
        for why, number in self._left.most_common():
            self._screen.say(f"{count(number, 'letter')} left: {why}.")
        for remark in self._remarks:
            self._screen.say(remark)
        if self._undone:
            rows = [
                (name(each.event_ids, each.message_id), each.became.value, each.reason, each.detail)
                for each in self._undone
            ]
            self._screen.table("Not done", ("event", "outcome", "reason", "detail"), rows)
        fates = listed(+self._fates) or "nothing to do"
        if self._policy.dry_run:
            self._screen.say(f"{count(self._fates.total(), 'letter')} would be sent: {fates}. Nothing was changed.")
        elif not self.sent:
            self._screen.say("Nothing was sent.")
        elif self._policy.is_followed:
            self._screen.say(f"{count(self.sent, 'letter')} sent: {listed(self._outcomes.counts)}.")
        else:
            self._screen.say(f"{count(self.sent, 'letter')} sent: {fates}.")
