"""Dead letters of strangers: they are listed and sent back as they are, and show nothing of a body on the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from idempotent_consumer.settings import Settings
from idempotent_consumer_cli.letters.letter import Letter
from idempotent_consumer_cli.letters.opened import open_letter
from tests.cli.letters_support import Dead, deploy
from tests.cli.support import Run, World
from tests.handler.hostile import WORST, bodies, examples
from tests.handler.hostile_json import KEY_MARKER, VALUE_MARKER

# In a terminal they would move the cursor, hide what follows, or turn it round; SQS takes them.
STEERING = "\u009b2J\u202egpj.\u200b\u2028"
PIPELINE = {"CONSUMER_NAME": "o", "LEDGER_TABLE": "l", "BUSINESS_TABLE": "b", "DEAD_LETTER_QUEUE_URL": "https://q"}


@pytest.fixture
def dead(new_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch) -> Iterator[Dead]:
    yield deploy(new_world, monkeypatch)


def check_screen(run: Run) -> None:
    assert run.exit_code in (0, 1)
    printed = run.stdout + run.stderr
    assert VALUE_MARKER not in printed
    assert [character for character in printed if not character.isprintable() and character != "\n"] == []


def check_letters(dead: Dead, texts: Sequence[str]) -> None:
    """Listed twice, each letter is where it was; sent back, each is in one of the two queues, byte for byte."""
    for arguments in (["inspect"], ["inspect", "--json"]):
        check_screen(dead.run(*arguments))
        assert dead.bodies == list(texts)
    check_screen(dead.run("replay", "--all"))
    assert sorted([*dead.bodies, *dead.queued_bodies]) == sorted(texts)


def not_named(body: str) -> str:
    """An event's id is shown on purpose."""
    return body.replace(f'"id":"{VALUE_MARKER}"', '"id":"o-3"') or " "


def test_letters_of_strangers_show_nothing_of_their_bodies(dead: Dead) -> None:
    @examples(4)
    @given(st.lists(bodies().map(not_named), min_size=15, max_size=20))
    @example(['{"id":"o-1"', "[" * 5_000, '{"id":"' + STEERING + '"}', '{"id":"o-1","id":"o-2"}', "\ufeff{}"])
    def check(texts: list[str]) -> None:
        dead.world.queued()
        dead.world.dead_letters()
        assert dead.all == dead.queued == []
        for number, text in enumerate(texts):
            dead.letter(text, *(["bad-json" + STEERING, STEERING] if number % 2 else []))
        check_letters(dead, texts)

    check()


def test_the_worst_that_is_known_is_listed_and_sent_back(dead: Dead) -> None:
    texts = [make() for make in WORST.values()]
    for text in texts:
        dead.letter(text)
    check_letters(dead, texts)


@pytest.mark.parametrize("envelope", ["raw", "sns", "eventbridge", "s3"])
def test_a_letter_of_a_stranger_is_opened_or_says_why_not(envelope: str) -> None:
    settings = Settings.from_environment({**PIPELINE, "EVENT_ENVELOPE": envelope})

    @examples(100)
    @given(bodies(envelope))
    def check(body: str) -> None:
        opened = open_letter(Letter("m-1", body, {}, {}), settings, is_fifo=False)
        for each in opened.events:
            assert (each.event is None) == (each.rejected is not None)
            assert each.rejected is None or VALUE_MARKER not in each.rejected.detail
            assert each.rejected is None or KEY_MARKER not in each.rejected.reason
            assert each.rejected is None or each.rejected.reason != "fault"

    check()
