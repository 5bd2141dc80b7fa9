"""What happens to the messages: each run on a cloud of its own, compared with the one in which nothing happens."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from idempotent_consumer.event import Event
from idempotent_consumer.testing.events import Message, one_by_one
from idempotent_consumer.testing.faults import Fault, FaultKind
from idempotent_consumer.testing.history import PUBLISH
from idempotent_consumer.testing.invariants import check_dead_letters, check_same, check_settled, expectation
from idempotent_consumer.testing.poller import BATCH, Poller
from idempotent_consumer.testing.problem import Finding, shortened
from idempotent_consumer.testing.purity import Planned
from idempotent_consumer.testing.run import Deliver, Run, Trial, play

UNDISTURBED = "each event comes once and nothing fails"
_FAULTS = (FaultKind.KILLED_BEFORE, FaultKind.KILLED_AFTER, FaultKind.ANSWER_LOST)
# So many calls, in all disturbed runs together, take a second or two. Beyond that not each call of a run is disturbed,
# but the first and the last of each operation, and evenly chosen ones between them.
_MOST_CALLS = 600
_FEWEST_DISTURBED = 5


@dataclass(frozen=True, slots=True)
class Tried:
    """reference: the undisturbed run. scenarios: what was tried. left_out: what was not, and why."""

    reference: Run
    scenarios: list[str]
    left_out: list[str]
    holds_beyond_window: bool


@dataclass(frozen=True, slots=True)
class Scenario:
    """name: as it goes on after "when"."""

    name: str
    deliver: Deliver
    fault: Fault | None = None


def try_all(trial: Trial, planned: Sequence[Planned], dead_letters: Collection[str], *, beyond_window: bool) -> Tried:
    """Raises Finding where an invariant does not hold."""
    reference = play(trial, UNDISTURBED, lambda poller: poller.settle(trial.messages))
    expected = expectation(reference, planned)
    check_settled(reference, expected, trial.messages)
    check_dead_letters(expected, dead_letters)
    orders = _Orders(trial, reference)
    chosen, left_out = _chosen_calls(reference)
    tried = []
    for scenario in (*_redeliveries(trial.messages), *_faults(trial.messages, reference, chosen)):
        run = play(trial, scenario.name, scenario.deliver, scenario.fault)
        check_settled(run, expected, trial.messages)
        orders.check(run)
        tried.append(scenario.name)
    forgotten = _try_beyond_window(trial, reference)
    if forgotten is not None and beyond_window:
        raise forgotten
    return Tried(reference, tried, left_out, forgotten is None)


class _Orders:
    """Compares runs with undisturbed ones that committed their events in the same order."""

    def __init__(self, trial: Trial, reference: Run) -> None:
        self._trial = trial
        self._runs = {tuple(reference.history.committed): reference}
        self._single = {
            (each.event.id, each.event.fingerprint): single
            for message in trial.messages
            for single in one_by_one(message)
            for each in single.events
            if isinstance(each.event, Event)
        }

    def check(self, run: Run) -> None:
        """Raises Finding."""
        order = tuple(run.history.committed)
        if order not in self._runs:
            self._runs[order] = self._replay(order, run)
        is_first = order == next(iter(self._runs))
        ordered = "the undisturbed run" if is_first else "the same events, each once, in the order " + ", ".join(order)
        check_same(run, self._runs[order], what=shortened(ordered))

    def _replay(self, order: Sequence[str], run: Run) -> Run:
        messages = [self._single[event_id, run.history.fingerprints[event_id]] for event_id in order]
        return play(self._trial, UNDISTURBED, lambda poller: poller.settle(messages, size=1))


def _redeliveries(messages: Sequence[Message]) -> Iterator[Scenario]:
    def twice(poller: Poller) -> None:
        poller.settle([copy for message in messages for copy in (message, message.again(2))])

    def again(poller: Poller) -> None:
        poller.settle(messages)
        poller.settle([message.again(2) for message in messages])

    def again_alone(poller: Poller) -> None:
        poller.settle(messages)
        poller.settle(messages, size=1, receive_count=2)

    yield Scenario("each message comes twice in one batch", twice)
    yield Scenario("each event comes in a batch of its own", lambda poller: poller.settle(messages, size=1))
    yield Scenario("all events are sent once more", again)
    yield Scenario("each message is delivered again by itself, with a receive count of 2", again_alone)


def _faults(messages: Sequence[Message], reference: Run, chosen: Sequence[int]) -> Iterator[Scenario]:
    for number in chosen:
        for kind in _FAULTS:
            name = kind.value.format(reference.calls[number - 1])
            yield _redelivered(name, messages, Fault(kind, number))
    if PUBLISH in reference.operations:
        name = FaultKind.REFUSED.value.format(PUBLISH)
        yield _redelivered(name, messages, Fault(FaultKind.REFUSED, operation=PUBLISH))


def _redelivered(name: str, messages: Sequence[Message], fault: Fault) -> Scenario:
    return Scenario(f"{name}, and what is not settled delivered again", lambda poller: poller.settle(messages), fault)


def _chosen_calls(reference: Run) -> tuple[list[int], list[str]]:
    count = len(reference.operations)
    most = max(_FEWEST_DISTURBED, _MOST_CALLS // (len(_FAULTS) * max(count, 1)))
    if count <= most:
        return list(range(1, count + 1)), []
    first = {operation: number for number, operation in reversed([*enumerate(reference.operations, 1)])}
    last = {operation: number for number, operation in enumerate(reference.operations, 1)}
    between = {1 + index * (count - 1) // (most - 1) for index in range(most)}
    chosen = sorted({*first.values(), *last.values(), *between})
    return chosen, [f"faults at {count - len(chosen)} of {count} calls: with fewer events, each call is disturbed"]


def _try_beyond_window(trial: Trial, reference: Run) -> Finding | None:
    """What changes if all that was committed comes again once the ledger has forgotten it; None: nothing."""
    committed = set(reference.history.committed)
    again = [
        message
        for message in trial.messages
        if all(isinstance(each.event, Event) and each.event.id in committed for each in message.events)
    ]

    def deliver(poller: Poller) -> None:
        poller.settle(trial.messages)
        poller.cloud.forget_events()
        poller.settle([message.again(2) for message in again], size=BATCH)

    run = play(trial, "all events are sent once more after ttl_window_days", deliver)
    try:
        check_same(run, reference, what="the run within the window")
        if len(run.history.heard) > len(reference.history.heard):
            raise Finding("notifications are heard once more", [f"when {run.scenario}"])
    except Finding as finding:
        return Finding(
            str(finding).partition("\nlikely")[0],
            instead="give each event a row of its own, by a Put(…) that inserts: it is known by it for as long as the "
            "row is there",
        )
    return None
