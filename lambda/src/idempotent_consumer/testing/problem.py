"""What the kit has to say against a plan, and what it lacks to try one."""

from collections.abc import Iterable


class CannotTry(ValueError):
    """The kit cannot try the plan as it was asked to; the text names the option that helps."""


class Finding(Exception):
    """Something about the plan, or the library, that `assert_idempotent` fails with.

    headline: one line. details: lines of evidence. likely: what usually causes it. instead: what to do.
    """

    def __init__(self, headline: str, details: Iterable[str] = (), *, likely: str = "", instead: str = "") -> None:
        lines = [headline, *(f"  {detail}" for detail in details)]
        if likely:
            lines.append(f"likely:  {likely}")
        if instead:
            lines.append(f"instead: {instead}")
        super().__init__("\n".join(lines))


def listed(names: Iterable[str]) -> str:
    """Names as prose: "a", "a and b", "a, b and c"; many are cut short."""
    names = list(dict.fromkeys(names))
    if len(names) > 4:
        names = [*names[:3], f"{len(names) - 3} more"]
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def shortened(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
