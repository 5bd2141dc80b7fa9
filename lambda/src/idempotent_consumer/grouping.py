"""Which events share the next transaction. Pure."""

from collections.abc import Hashable, Sequence

from idempotent_consumer.commit import MAX_ACTIONS
from idempotent_consumer.delivery import Reading, Work

# Somewhat below what a transaction takes, since sizes of changes are not exact.
MAX_BYTES = 4_000_000
# So many events of two actions each fill a transaction; no more are looked at for one.
MAX_EVENTS = 50


def next_group(window: Sequence[Work]) -> list[Work]:
    """The events of the next transaction, in the order of the queue; empty where none is ready.

    Those whose transactions have failed least come first: what others wait for must not hold them up. An event never
    overtakes one that writes the same row, unless the two share it or the other awaits it, nor, on FIFO, an earlier one
    of its message group.
    """
    for attempts in sorted({work.attempts for work in window if not work.is_decided}):
        group = _pick(window, attempts)
        if group:
            return group
    return []


def smaller_group(size: int) -> int:
    """How many events may try again together after `size` of them failed: of 50 each is alone at its third failure."""
    return max(1, size // 4)


def _pick(window: Sequence[Work], most_attempts: int) -> list[Work]:
    group: list[Work] = []
    rows: dict[Hashable, Hashable] = {}
    closed: set[str] = set()
    actions, size, room = 0, 0, MAX_EVENTS
    for work in window:
        if work.is_decided or work.event is None:
            continue
        commit, message_group = work.commit, work.message.group
        room_with_it = min(room, work.largest_group or room)
        is_picked = (
            commit is not None
            and work.reading is Reading.NONE
            and work.attempts <= most_attempts
            and message_group not in closed
            and not any(row in rows and (sharing is None or rows[row] != sharing) for row, sharing in commit.rows)
            and len(group) < room_with_it
            and (not group or actions + commit.actions <= MAX_ACTIONS)  # one that no transaction can hold
            and (not group or size + commit.size <= MAX_BYTES)  # goes alone, and DynamoDB says so
        )
        if commit is not None and is_picked:
            group.append(work)
            actions, size, room = actions + commit.actions, size + commit.size, room_with_it
        elif message_group is not None:
            closed.add(message_group)
        claims_all = is_picked or not work.awaits_row
        for row, sharing in commit.rows if commit is not None and claims_all else [(work.event.id, None)]:
            rows[row] = sharing if rows.get(row, sharing) == sharing else None
    return group
