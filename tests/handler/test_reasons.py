"""The page of reasons names each reason that the code can give, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Rejected("code" …), Verdict(Outcome.X, "code" …) and the codes that aws.retry_verdict assigns.
GIVEN = re.compile(r'(?:Rejected\(\s*|Verdict\(\s*Outcome\.[A-Z]+,\s*|\breason = )"([a-z0-9-]+)"')
NAMED = re.compile(r"^\| `([a-z0-9-]+)` \|", re.MULTILINE)


def test_each_reason_is_explained_once() -> None:
    sources = (ROOT / "lambda" / "src" / "idempotent_consumer").glob("*.py")
    given = {reason for source in sources for reason in GIVEN.findall(source.read_text(encoding="utf-8"))}
    named = NAMED.findall((ROOT / "docs" / "reasons.md").read_text(encoding="utf-8"))

    assert sorted(named) == sorted(given)
    assert len(named) == 54
