"""Each planted fault still is one: it applies to the code as it is, is small, and names tests that there are."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from local.terraform import CHECKOUT
from tests.plant.fault import Fault, NotApplicable, read_fault, read_faults
from tests.plant.trial import read

FAULTS = read_faults()
# A change that takes more lines is several.
MOST_LINES = 6
NODE = re.compile(r"(?P<file>tests/[\w/]+\.py)(::(?P<group>Test\w+))?::(?P<name>test_\w+)(\[.+\])?")


def test_there_are_many() -> None:
    assert len(FAULTS) >= 40


def test_no_two_are_the_same() -> None:
    assert [does for does, number in Counter(fault.does for fault in FAULTS).items() if number > 1] == []
    assert len({str(fault.changes) for fault in FAULTS}) == len(FAULTS)


def test_each_applies_and_leaves_code_that_can_be_compiled() -> None:
    for fault in FAULTS:
        for change in fault.changes:
            text = read(CHECKOUT / change.path)
            changed = change.apply(text)
            assert changed != text, fault.name
            if change.path.endswith(".py"):
                compile(changed, f"{fault.name}: {change.path}", "exec")


def test_each_is_one_small_change_of_shipped_code() -> None:
    hunks = {(fault.name, change.path): change.hunks for fault in FAULTS for change in fault.changes}
    assert len(hunks) == len(FAULTS)
    shipped = re.compile(r"(lambda/src|cli|modules)/.+|\w+\.tf")
    assert [found for found in hunks if not shipped.fullmatch(found[1])] == []
    assert [found for found, each in hunks.items() if len(each) != 1 or not 1 <= each[0].changed <= MOST_LINES] == []


def test_each_says_in_one_sentence_what_it_does() -> None:
    sentence = re.compile(r"[A-Z`].{20,170}[^.]\.")
    assert [fault.does for fault in FAULTS if not sentence.fullmatch(fault.does)] == []


def test_each_names_tests_that_there_are() -> None:
    assert [fault.name for fault in FAULTS if not fault.tests] == []
    assert [test for fault in FAULTS for test in fault.tests if not is_there(test)] == []


def test_none_needs_an_emulator() -> None:
    assert [fault.name for fault in FAULTS if any(test.startswith("tests/e2e/") for test in fault.tests)] == []


def is_there(test: str) -> bool:
    found = NODE.fullmatch(test)
    if found is None:
        return False
    text = read(CHECKOUT / found["file"])
    inside = text.partition(f"class {found['group']}:")[2] if found["group"] else text
    return re.search(rf"^ *def {found['name']}\(", inside, re.MULTILINE) is not None


# --- how patches are read and applied


PATCH = """The sum is too large.
caught by: tests/test_sum.py::test_adds

--- a/sum.py
+++ b/sum.py
@@ -2,2 +2,2 @@
 def add(one, other):
-    return one + other
+    return one + other + 1
"""
SUM = "X = 1\ndef add(one, other):\n    return one + other\n\n"


@pytest.fixture
def fault(tmp_path: Path) -> Fault:
    path = tmp_path / "too-large.patch"
    path.write_text(PATCH)
    return read_fault(path)


def test_a_patch_is_read_with_what_it_does_and_who_catches_it(fault: Fault) -> None:
    assert (fault.name, fault.does) == ("too-large", "The sum is too large.")
    assert fault.tests == ["tests/test_sum.py::test_adds"]
    assert [change.path for change in fault.changes] == ["sum.py"]
    assert fault.changes[0].hunks[0].changed == 1


def test_a_patch_changes_its_lines_and_no_others(fault: Fault) -> None:
    assert fault.changes[0].apply(SUM) == "X = 1\ndef add(one, other):\n    return one + other + 1\n\n"


def test_lines_that_have_moved_are_found(fault: Fault) -> None:
    assert fault.changes[0].apply("Y = 2\n" + SUM).endswith("    return one + other + 1\n\n")


def test_lines_that_have_changed_are_not_guessed(fault: Fault) -> None:
    with pytest.raises(NotApplicable, match=r"sum\.py: its lines are no longer there"):
        fault.changes[0].apply(SUM.replace("one + other", "other + one"))


def test_of_several_places_none_is_guessed(fault: Fault) -> None:
    with pytest.raises(NotApplicable, match=r"sum\.py: its lines are in several places"):
        fault.changes[0].apply("Y = 2\n" + SUM + SUM)


def test_a_file_without_a_change_is_no_patch(tmp_path: Path) -> None:
    path = tmp_path / "nothing.patch"
    path.write_text("Does nothing.\ncaught by: tests/test_sum.py::test_adds\n")
    with pytest.raises(ValueError, match=r"nothing\.patch holds no change"):
        read_fault(path)
