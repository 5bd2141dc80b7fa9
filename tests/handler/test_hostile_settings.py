"""Whatever stands in an environment variable is accepted, or refused by the variable's name; nothing else happens."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from idempotent_consumer.guard import Guard
from idempotent_consumer.http.settings import VARIABLE, HttpSettings
from idempotent_consumer.operation_settings import OperationSettings
from idempotent_consumer.settings import ReconcilerSettings, Settings, SettingsError
from idempotent_consumer.workflow.settings import WorkflowSettings
from tests.handler.hostile import examples
from tests.handler.hostile_json import STRINGS, values
from tests.handler.hostile_world import DEAD_LETTERS, TOPIC
from tests.handler.pending_model import RECONCILER
from tests.handler.support import BUSINESS, LEDGER
from tests.handler.test_hostile_operation import ENVIRONMENT as OPERATION
from tests.handler.workflow_support import STARTER_ENVIRONMENT, TABLE

PIPELINE = {
    "CONSUMER_NAME": "orders",
    "LEDGER_TABLE": LEDGER,
    "BUSINESS_TABLE": BUSINESS,
    "BUSINESS_HASH_KEY": "id",
    "BUSINESS_HASH_KEY_TYPE": "S",
    "BUSINESS_RANGE_KEY": "line",
    "BUSINESS_RANGE_KEY_TYPE": "N",
    "TTL_WINDOW_DAYS": "30",
    "EVENT_ENVELOPE": "raw",
    "EVENT_ID": "id",
    "EVENT_ITEM": "@",
    "EVENT_VERSION": "version",
    "EVENT_WRITE_MODE": "newer",
    "EVENT_FINGERPRINT": "@",
    "TOPIC_ARN": TOPIC,
    "NOTIFICATION_MESSAGE": "@",
    "NOTIFICATION_ATTRIBUTES": '{"a":"b"}',
    "NOTIFICATION_MAX_BYTES": "262144",
    "DEAD_LETTER_QUEUE_URL": DEAD_LETTERS,
    "QUEUE_URL": "https://sqs.test/orders",
    "VISIBILITY_TIMEOUT_SECONDS": "180",
    "BACKOFF_MAX_SECONDS": "900",
    "RETENTION_SECONDS": "345600",
    "MAX_RECEIVE_COUNT": "5",
}
READERS: dict[str, tuple[dict[str, str], Callable[[Mapping[str, str]], Any]]] = {
    "pipeline": (PIPELINE, Settings.from_environment),
    "reconciler": ({**RECONCILER, "TTL_WINDOW_DAYS": "30"}, ReconcilerSettings.from_environment),
    "operation": ({**OPERATION, "EVENT_ID": "id", "OPERATION_UNCERTAIN": "park"}, OperationSettings.from_environment),
    "starter": ({**STARTER_ENVIRONMENT, "EVENT_FINGERPRINT": "@"}, WorkflowSettings.from_environment),
    "guard": ({"CONSUMER_NAME": "orders", "IDEMPOTENCY_TABLE": TABLE}, lambda environment: Guard(environment, None)),
}
# jmespath tells of an old spelling of literals.
pytestmark = pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
# All variables of a function have 4 KB together (AWS Lambda Developer Guide, "Environment variables").
MOST_CHARACTERS = 4_096
_jmespath = st.lists(
    st.sampled_from(
        (
            *(
                "a",
                "id",
                "@",
                "&",
                "&&",
                "||",
                "|",
                "!",
                ".",
                "*",
                "[",
                "]",
                "[]",
                "[*]",
                "[?",
                "{",
                "}",
                "(",
                ")",
                ":",
            ),
            *(
                ",",
                "`",
                "`1`",
                "`1e400`",
                "`{}`",
                "`[`",
                "'",
                "'a'",
                '"',
                '"a"',
                '"\\ud800"',
                "0",
                "-1",
                "9" * 30,
                "==",
            ),
            *("<", "sum(", "sort_by(", "to_number(", "join('/', ", " ", "\n", "\u00e9", "$", "#", "\\", "`NaN`", "`9`"),
        )
    ),
    max_size=8,
).map("".join)
_numbers = st.sampled_from(
    ("0", "-1", "1", "00", "1e3", "1.5", " 1", "1 ", "+1", "1_0", "\u0661", "\u00b2", "\uff11", "9" * 4_096, "0x1", "")
)
_characters = st.characters(codec="utf-8", exclude_characters="\0")
_any_text = st.one_of(
    _jmespath, _jmespath, _numbers, st.sampled_from(STRINGS), values, st.text(_characters, max_size=30)
).filter(lambda text: len(text) <= MOST_CHARACTERS)


@pytest.mark.parametrize("reader", READERS)
def test_any_text_in_any_variable_is_accepted_or_refused_by_name(reader: str) -> None:
    good, read = READERS[reader]
    read(good)

    @examples(40 * len(good))
    @given(st.sampled_from(sorted(good)), _any_text)
    @example("CONSUMER_NAME", "")
    def check(name: str, text: str) -> None:
        try:
            read({**good, name: text})
        except SettingsError as error:
            assert name in str(error)

    check()


@pytest.fixture
def _usual_depth() -> Iterator[None]:
    """Python's own limit, as in Lambda: a library of another test has raised it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("_usual_depth")
@pytest.mark.parametrize(
    "text", ["(" * 2_000, "!" * 3_000 + "a", "a" + "[]" * 2_000, "a||" * 1_300 + "a", f"`{'[' * 2_000}`"]
)
def test_expression_that_is_nested_too_deep_is_refused_by_name(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^EVENT_ITEM is "):
        Settings.from_environment({**PIPELINE, "EVENT_ITEM": text})


@pytest.mark.usefixtures("_usual_depth")
def test_attributes_that_are_nested_too_deep_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match=r"^NOTIFICATION_ATTRIBUTES is '\[+', not a JSON object"):
        Settings.from_environment({**PIPELINE, "NOTIFICATION_ATTRIBUTES": "[" * 4_000})


@pytest.mark.parametrize("reader", READERS)
def test_any_mixture_of_variables_is_accepted_or_refused(reader: str) -> None:
    good, read = READERS[reader]
    texts = _any_text | st.sampled_from(sorted(good.values()))

    @examples(150)
    @given(st.dictionaries(st.sampled_from(sorted(good)), texts), st.booleans())
    def check(changes: dict[str, str], is_complete: bool) -> None:
        try:
            read({**good, **changes} if is_complete else changes)
        except SettingsError as error:
            assert any(name in str(error) for name in good)

    check()


_FIELDS = (
    "url",
    "hosts",
    "method",
    "body",
    "headers",
    "result",
    "idempotency_header",
    "secret",
    "statuses",
    "reconcile",
)


@examples(400)
@given(st.sampled_from((*_FIELDS, "allow_http", "theirs")), values | _jmespath.map(lambda text: f'"{text}"'))
@example("headers", '{"X":"[["}')
@example("hosts", "9" * 5_000)
def test_any_value_in_any_field_of_http_is_accepted_or_refused_by_the_variable_s_name(field: str, value: str) -> None:
    good = {"url": "\"'https://a.example/'\"", "hosts": '["a.example"]'}
    assume(len(value) <= MOST_CHARACTERS or value.isdigit())
    members = ",".join(f'"{name}":{text}' for name, text in {**good, field: value}.items())
    try:
        HttpSettings.from_json("{" + members + "}")
    except SettingsError as error:
        assert VARIABLE in str(error)
