"""What a workflow will do with a letter, from the claim of its key. Pure.

What its effect will do is never foretold.
"""

from __future__ import annotations

from collections.abc import Sequence

from idempotent_consumer.event import Event
from idempotent_consumer_cli.consumer.executions import Execution
from idempotent_consumer_cli.foresight.prospect import Fate, Foretold, LedgerState, Prospect
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.rows.claim import COMPLETED, IN_PROGRESS, RELEASED, Claim

# Reasons of letters whose key was claimed, or may have been, and not given back.
CLAIMED = frozenset(
    {"aborted", "claim-kept", "failed", "id-reused", "outcome-not-recorded", "outcome-unknown", "timed-out"}
)
# After which the effect has run for certain, and after which its own execution has certainly not run it.
HAS_RUN = "outcome-not-recorded"
HAS_NOT_RUN = frozenset({"guard-failed", "not-applied"})
# What to do about a letter of these.
DROP, RELEASE = "drop: the effect ran", "release: the effect did not run"
NO_ROOM = "has ten attributes, and needs one for its key: `drop` it, take one out in the file, replay --from-drop"
_KEPT = "would only come back: its claim is kept, `release` it first"
_KEPT_OF_RUN = "would only come back: its claim is kept, and its effect ran: `drop` it"
_RUNS = "would only come back: its claim is held by an execution that runs"
_MAY_RUN = "would only come back: its claim is held by an execution that cannot be read, see whether it runs"


def is_in_question(claim: Claim) -> bool:
    """Whether its execution has to be asked what becomes of it."""
    return claim.status == IN_PROGRESS and claim.parked_ms is None


def state_of(claim: Claim, execution: Execution | None) -> LedgerState:
    """execution: that owns it, where it is in question."""
    if not claim.is_readable:
        return LedgerState.UNREADABLE
    if claim.status == RELEASED:
        return LedgerState.RELEASED
    if claim.status == COMPLETED:
        return LedgerState.COMPLETED
    if claim.parked_ms is not None:
        return LedgerState.PARKED
    is_held = execution is None or execution.is_running or not execution.status
    return LedgerState.IN_PROGRESS if is_held else LedgerState.ENDED


def by_claim(event: Event, claim: Claim | None, execution: Execution | None) -> Foretold:
    """What the guard, and the state machine after it, make of a replay.

    claim: of its key. execution: see `state_of`.
    """

    def foretold(state: LedgerState, fate: Fate, reason: str = "", detail: str = "") -> Foretold:
        return Foretold(
            event.id, state, fate, reason, detail, fingerprint=event.fingerprint, claim=claim, execution=execution
        )

    if claim is None:
        return foretold(LedgerState.NEVER_SEEN, Fate.RUN, detail="its key is free")
    state = state_of(claim, execution)
    if state is LedgerState.RELEASED:
        return foretold(state, Fate.RUN, detail="its claim was released")
    if claim.fingerprint and claim.fingerprint != event.fingerprint:
        detail = f"the key is claimed for other content, by {claim.owner or 'nobody that it names'}"
        return foretold(LedgerState.CONFLICT, Fate.REFUSE, "id-reused", detail)
    if state is LedgerState.COMPLETED:
        return foretold(state, Fate.NO_OP, detail="completed: it is skipped")
    return foretold(state, Fate.KEEP, "claim-kept", _why_kept(claim, state, execution))


def why_stays(letter: Letter, events: Sequence[Foretold]) -> str:
    """Why a letter would be sent in vain: it would only come back. Empty where it is to be sent."""
    kept = [event for event in events if event.fate is Fate.KEEP]
    if not kept or any(event.fate in (Fate.RUN, Fate.UNKNOWN) for event in events):
        return ""
    if letter.reason == HAS_RUN:
        return _KEPT_OF_RUN
    held = [event for event in kept if event.state is LedgerState.IN_PROGRESS]
    if not held:
        return _KEPT
    return _MAY_RUN if any(_is_unread(event) for event in held) else _RUNS


def to_do(prospect: Prospect, letter: Letter) -> str:
    """The command for a letter of a workflow, in short."""
    is_done = prospect.fate is Fate.NO_OP
    if (letter.reason == HAS_RUN and not is_done) or (prospect.is_beyond_window and is_done):
        return DROP
    if prospect.is_beyond_window:
        return "see whether the effect ran; replay --beyond-window, or drop"
    if prospect.stays == NO_ROOM:
        return NO_ROOM
    if prospect.fate is Fate.KEEP:
        return _to_do_about_kept(prospect, letter)
    if prospect.fate is Fate.REFUSE:
        return "mend the cause, or drop"
    return "replay (is skipped), or drop" if is_done else "replay"


def _to_do_about_kept(prospect: Prospect, letter: Letter) -> str:
    kept = [event for event in prospect.events if event.fate is Fate.KEEP]
    if prospect.state is LedgerState.UNREADABLE:
        return "look at the row"
    if prospect.state is LedgerState.IN_PROGRESS:
        is_unread = any(_is_unread(event) for event in kept)
        return "see whether it runs, then release --force" if is_unread else "wait for its execution"
    # A claim of another execution says nothing of this letter's.
    is_own = all(event.claim is not None and event.claim.owner == letter.execution for event in kept)
    is_ended = all(event.state is LedgerState.ENDED for event in kept)
    return RELEASE if letter.reason in HAS_NOT_RUN and is_own and is_ended else "see whether it ran; release, or drop"


def _is_unread(event: Foretold) -> bool:
    return event.execution is not None and not event.execution.status


def _why_kept(claim: Claim, state: LedgerState, execution: Execution | None) -> str:
    if state is LedgerState.UNREADABLE:
        return "no workflow writes such a row"
    if state is LedgerState.PARKED:
        return f"parked, `release` it first: {claim.why}"
    if execution is None or execution.is_running:
        return "its execution runs"
    return execution.problem or f"its execution has ended ({execution.status}), and recorded no outcome"
