"""Prints docs/privileges.md: python -m tests.plan.privileges > docs/privileges.md"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.plan.rights import Right, Role
from tests.plan.roles import ROLES
from tests.plan.sources import EVERYWHERE, SENDERS, TAKERS

PINNED = "pinned"
INTRODUCTION = """\
# Privileges

Every right of every role that the modules make, what it is on, and the call that needs it. There are no others:
`tests/plan/test_iam.py` compares each role, in each variant, with these tables.
`.venv/bin/python -m tests.plan.privileges` prints this page from what that test reads.

The last column tells how it is shown that the right is needed:

- *A test's name*: on the emulator the test takes the right away. Something then does not settle, or settles later, and
  is well once the right is back.
- *pinned*: the emulator does not ask for the right (the polling of the event source mapping, logs, traces, keys, the
  VPC, the schedule and all that a state machine does), or nothing here makes the call (a plan of your own). That the
  call needs it stands in AWS's documentation alone.

What `function.policy_documents`, `reconciler.policy_documents` and `effect.policy_documents` give comes on top, as
policies of their own. A key's own policy is yours.
"""
SENDERS_INTRODUCTION = """\
## Who sends to a queue

By the queue's policy, which allows `sqs:SendMessage` alone. A queue without producers has no policy. Only the queue
itself may move its messages to the dead-letter queue (`redrivePermission = "byQueue"`). No function and no topic has a
policy.

"""
EVERYWHERE_INTRODUCTION = """\
## What is allowed on `*`

These actions, and no others. No action is written with a `*`, and no other resource but the streams of a log group.

"""


def test_name(test: str) -> str:
    """A link to the test's file."""
    path, name = test.split("::")
    return f"[{name}](../{path})"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def right_row(right: Right, when: str) -> Sequence[str]:
    shown = test_name(right.taken_away) if right.taken_away else PINNED
    return f"`{right.action}`", right.on.words, right.call, when or "always", shown


def role_section(role: Role) -> str:
    rows = [right_row(right, when) for when in role.rights for right in role.rights[when]]
    return f"## {role.title}\n\n" + table(("action", "on", "needed for", "given with", "shown by"), rows)


def takers_section() -> str:
    rows = [(f"`{taker.service}`", taker.roles, taker.condition, taker.why) for taker in TAKERS]
    return "## Who takes a role\n\n" + table(("service", "roles", "condition", "why not narrower"), rows)


def senders_section() -> str:
    rows = [
        (
            f"`{sender.service}`",
            sender.on.words,
            sender.condition,
            test_name(sender.taken_away) if sender.taken_away else PINNED,
        )
        for sender in SENDERS
    ]
    return SENDERS_INTRODUCTION + table(("service", "to", "condition", "shown by"), rows)


def everywhere_section() -> str:
    rows = [(", ".join(f"`{action}`" for action in sorted(each.actions)), each.why) for each in EVERYWHERE]
    return EVERYWHERE_INTRODUCTION + table(("actions", "why"), rows)


def document() -> str:
    sections = [role_section(role) for role in ROLES]
    return "\n".join([INTRODUCTION, *sections, takers_section(), senders_section(), everywhere_section()])


if __name__ == "__main__":
    print(document(), end="")
