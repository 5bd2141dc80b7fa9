"""Long integers and the spellings of zero: exact all the way, or refused, and never a fault that comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.handler.support import COMMIT, NOTHING_FAILED, Cloud, record

LONGEST = "9" * 400
# Twice as much: 401 digits.
DOUBLE = "1" + "9" * 399 + "8"
BODY_OF_LONG_NUMBERS = f'{{"id":"o-1","v":[{LONGEST},{LONGEST}]}}'


def test_sum_of_long_integers_is_published_digit_by_digit(cloud: Cloud) -> None:
    answer = cloud.deliver(
        record("m-1", BODY_OF_LONG_NUMBERS), EVENT_ITEM="{id: id}", NOTIFICATION_MESSAGE="{t: sum(v)}"
    )
    assert answer == NOTHING_FAILED
    assert [notification.message for notification in cloud.notifications()] == [f'{{"t":{DOUBLE}}}']


def test_sum_of_long_integers_may_be_the_fingerprint(cloud: Cloud) -> None:
    select: dict[str, Any] = {"EVENT_ITEM": "{id: id}", "NOTIFICATION_MESSAGE": "id", "EVENT_FINGERPRINT": "sum(v)"}
    same_sum = f'{{"id":"o-1","v":[1,{"9" * 399}8,{LONGEST}]}}'
    one_more = f'{{"id":"o-1","v":[1,{LONGEST},{LONGEST}]}}'
    cloud.deliver(record("m-1", BODY_OF_LONG_NUMBERS), **select)
    assert cloud.deliver(record("m-2", same_sum), **select) == NOTHING_FAILED
    assert cloud.dead_letters() == []
    assert cloud.deliver(record("m-3", one_more), **select) == NOTHING_FAILED
    assert cloud.reasons() == ["id-reused"]
    assert cloud.notified() == ["o-1"]


def test_sum_of_long_integers_may_be_the_id(cloud: Cloud) -> None:
    answer = cloud.deliver(
        record("m-1", BODY_OF_LONG_NUMBERS), EVENT_ID="sum(v)", EVENT_ITEM="{id: id}", NOTIFICATION_MESSAGE="id"
    )
    assert answer == NOTHING_FAILED
    assert cloud.statuses() == {DOUBLE: "sent"}
    assert cloud.notified() == [DOUBLE]


@pytest.mark.parametrize(
    "select",
    [{"NOTIFICATION_MESSAGE": "{t: sum(v)}"}, {"EVENT_FINGERPRINT": "sum(v)"}, {"EVENT_ID": "sum(v)"}],
    ids=["message", "fingerprint", "id"],
)
@pytest.mark.parametrize("digits", [401, 4_300, 4_301])
def test_integer_of_over_400_digits_is_dead_lettered_whatever_is_made_of_it(
    cloud: Cloud, select: dict[str, Any], digits: int, logged: Callable[[], list[tuple[str, str, str, str]]]
) -> None:
    body = f'{{"id":"o-1","v":[{"9" * digits},{"9" * digits}]}}'
    assert cloud.deliver(record("m-1", body), record("m-2", {"id": "o-2", "v": [1]}), **select) == NOTHING_FAILED
    assert logged() == [("m-1", "rejected", "number-out-of-range", "")]
    assert [letter.detail for letter in cloud.dead_letters()] == ["an integer has over 400 digits"]
    assert list(cloud.statuses().values()) == ["sent"]


def test_zero_is_written_without_sign_point_or_exponent(cloud: Cloud) -> None:
    body = '{"id":"o-1","zeros":[0,-0,0.0,-0.0,0.00,0e5,0e-390]}'
    cloud.deliver(record("m-1", body), NOTIFICATION_ATTRIBUTES='{"zero":"zeros[6]"}')
    assert cloud.requests(COMMIT)[0]["TransactItems"][1]["Put"]["Item"]["zeros"] == {"L": [{"N": "0"}] * 7}
    (notification,) = cloud.notifications()
    assert notification.message == '{"id":"o-1","zeros":[0,0,0,0,0,0,0]}'
    assert notification.attributes["zero"] == ("Number", "0")
