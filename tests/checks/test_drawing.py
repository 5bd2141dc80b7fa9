from __future__ import annotations

from pathlib import Path

from checks import drawing
from checks.picture import drawn_from
from checks.tree import Tree, read

FLOW = """\
title = "One box"

[[box]]
name = "a"
at = [0, 0]
title = "A"

[[arrow]]
from = "a"
to = "a"
"""


def test_the_picture_that_the_text_gives_passes_and_another_is_found() -> None:
    assert drawing.problems(Tree({drawing.TEXT: FLOW, drawing.PICTURE: drawn_from(FLOW)})) == []
    other = Tree({drawing.TEXT: FLOW.replace('"A"', '"B"'), drawing.PICTURE: drawn_from(FLOW)})
    assert drawing.problems(other) == ["docs/flow.svg:1: the picture is not what docs/flow.toml says: run make docs"]


def test_writing_draws_it_again_once(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / drawing.TEXT).write_text(FLOW)
    assert drawing.write(read(tmp_path, [drawing.TEXT]), tmp_path) == ["docs/flow.svg"]
    assert (tmp_path / drawing.PICTURE).read_text() == drawn_from(FLOW)
    assert drawing.write(read(tmp_path, [drawing.TEXT, drawing.PICTURE]), tmp_path) == []
