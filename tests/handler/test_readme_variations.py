"""The lines of README.md that say what an event is do so for an event, in the block that README begins with."""

from __future__ import annotations

import re
from typing import Any

import pytest

from local.terraform import CHECKOUT
from tests.handler.support import EVENTS, NOTHING_FAILED, Cloud, record

LINES = re.findall(r"^event +=( \{.*?\}) +(?:#|$)|^event +=( \{.*\})$", (CHECKOUT / "README.md").read_text(), re.M)
SETTINGS = {
    "id": "EVENT_ID",
    "envelope": "EVENT_ENVELOPE",
    "item": "EVENT_ITEM",
    "version": "EVENT_VERSION",
    "write_mode": "EVENT_WRITE_MODE",
}
PARCEL = '{"detail": {"order": {"id": "p-1", "weight": 3}}, "detail-type": "parcel", "source": "shop"}'


def settings_of(line: str) -> dict[str, Any]:
    return {SETTINGS[name]: value for name, value in re.findall(r'(\w+) = "((?:[^"\\]|\\.)*)"', line)}


@pytest.mark.parametrize(
    ("number", "body", "row_id"),
    [
        (0, PARCEL, "p-1"),
        (1, (EVENTS / "body_s3_put.json").read_text(), "in/2030/invoice-0001.csv"),
        (2, '{"id": "o-1", "updated_at": "2030-01-02T03:04:05Z"}', "o-1"),
    ],
)
def test_a_variation_makes_a_row_of_its_event(cloud: Cloud, number: int, body: str, row_id: str) -> None:
    assert len(LINES) == 3
    line = "".join(LINES[number])
    assert cloud.deliver(record("m-1", body), **settings_of(line)) == NOTHING_FAILED
    assert [row["id"] for row in cloud.rows().values()] == [{"S": row_id}]
    assert cloud.dead_letters() == []
