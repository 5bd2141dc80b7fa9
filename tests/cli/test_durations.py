from __future__ import annotations

import click
import pytest

from idempotent_consumer_cli.options import DURATION
from idempotent_consumer_cli.words import spoken


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("3d", 259_200), ("1h30m", 5400), (" 2H ", 7200)],
)
def test_a_duration_is_read_as_seconds(text: str, seconds: int) -> None:
    assert DURATION.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "soon", "-5m", "1.5h", "5 m", "5w", "m", "1h30", "9" * 5_000, "9" * 5_000 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no duration: write 90s, 15m, 2h or 3d"):
        DURATION.convert(text, None, None)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-3, "0s"),
        (0, "0s"),
        (0.9, "0s"),
        (59, "59s"),
        (900, "15m"),
        (3725, "1h 2m"),
        (7230, "2h 30s"),
        (90_000, "1d 1h"),
    ],
)
def test_a_duration_is_spoken_with_its_two_largest_units(seconds: float, text: str) -> None:
    assert spoken(seconds) == text
