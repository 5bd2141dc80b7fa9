"""The fixture that docs/adding-an-event-fixture.md makes is the one that its test uses."""

from __future__ import annotations

import re

from local.terraform import CHECKOUT
from tests.docs.pages import blocks_of, text_of

PAGE = "docs/adding-an-event-fixture.md"


def test_the_page_shows_the_fixture_as_it_lies_in_its_folder() -> None:
    (shown,) = (block.text for block in blocks_of(PAGE) if block.language == "json")
    name = "body_eventbridge_scheduled.json"
    assert (CHECKOUT / "tests/fixtures/events" / name).read_text(encoding="utf-8") == shown
    assert text_of(PAGE).count(name) == 2


def test_the_files_that_the_page_names_exist() -> None:
    named = set(re.findall(r"`(tests/[\w/.]+)`", text_of(PAGE)))
    assert len(named) > 4
    assert [name for name in named if not (CHECKOUT / name).exists()] == []
