"""The guard is asked anything, and finds anything in its row: it answers, or names the field that makes no sense."""

from __future__ import annotations

from typing import Any

import botocore.session
from botocore.validate import ParamValidator
from hypothesis import example, given
from hypothesis import strategies as st

from idempotent_consumer.guard import Guard
from idempotent_consumer.workflow.claim import InvalidRequest
from tests.handler.hostile import examples
from tests.handler.hostile_json import KEY_MARKER, VALUE_MARKER
from tests.handler.support import NOW_MS, client_error
from tests.handler.watching import watched
from tests.handler.workflow_support import TABLE


class Table:
    """standing: the row that is in the way of each claim; None where nothing is."""

    def __init__(self, standing: dict[str, Any] | None) -> None:
        self.requests: list[dict[str, Any]] = []
        self._standing = standing

    def update_item(self, **request: Any) -> dict[str, Any]:
        self.requests.append(request)
        if self._standing is not None:
            raise client_error("ConditionalCheckFailedException", "UpdateItem", Item=self._standing)
        return {}


UPDATE_SHAPE = botocore.session.get_session().get_service_model("dynamodb").operation_model("UpdateItem").input_shape
GUARD = {"CONSUMER_NAME": "orders", "IDEMPOTENCY_TABLE": TABLE}
_odd = st.sampled_from(
    (
        *(None, "", " ", "o-1", VALUE_MARKER, "x" * 2_048, "x" * 2_049, "\u00e9" * 1_025, "\ud800", "\0", "\u202e"),
        *(0, -1, 1, 7.5, True, False, 10**30, float("nan"), [], {}, [VALUE_MARKER], {KEY_MARKER: VALUE_MARKER}),
        *("#owner", ":owner", TABLE, "attribute_exists(pk)"),
    )
)
_FIELDS = ("key", "messageId", "owner", "namespace", "fingerprint", "retentionSeconds", "returnResult", "table")
_requests = st.dictionaries(st.sampled_from(_FIELDS), _odd, max_size=6)


@examples(200)
@given(_requests | _odd)
@example({"key": "\ud800"})
@example({"messageId": "m-1", "retentionSeconds": 10**30})
def test_guard_that_is_asked_anything_claims_one_row_or_names_the_field(request: Any) -> None:
    table = Table(None)
    with watched() as seen:
        try:
            answer = Guard(GUARD, table).handle(request)
        except InvalidRequest as error:
            assert any(word in str(error) for word in (*_FIELDS, "request"))
            # A setting's value may be quoted.
            assert VALUE_MARKER not in str(error) or str(error).startswith("retentionSeconds is ")
            answer = None
    seen.check()
    if answer is None:
        assert table.requests == []
        return
    (claim,) = table.requests
    assert not ParamValidator().validate(claim, UPDATE_SHAPE).has_errors()
    assert claim["TableName"] == TABLE
    assert answer["idempotencyKey"] == {name: value["S"] for name, value in claim["Key"].items()}
    assert claim["Key"]["pk"]["S"] == request.get("key") or f"sqs:{request['messageId']}"
    assert claim["ExpressionAttributeValues"][":claimedAt"] == {"N": str(NOW_MS)}


_attributes = st.sampled_from(
    (
        *({"S": ""}, {"S": "f"}, {"S": VALUE_MARKER}, {"S": "{"}, {"S": '{"a":1e400}'}, {"S": "9" * 5_000}),
        *({"S": "IN_PROGRESS"}, {"S": "COMPLETED"}, {"N": "1"}, {"NULL": True}, {"M": {}}, {"L": []}, {"B": b"\xff"}),
    )
)


@examples(100)
@given(
    st.dictionaries(st.sampled_from(("status", "owner", "result", "parkedAt", "expiresAt", "detail")), _attributes),
    st.sampled_from((None, {"S": ""}, {"S": "f"}, {"N": "1"}, {"M": {}})),
    st.booleans(),
)
@example({"status": {"S": "COMPLETED"}, "result": {"S": "[" * 5_000}}, {"S": "f"}, True)
@example({}, {"N": "1"}, False)
def test_guard_answers_whatever_stands_in_the_row(
    standing: dict[str, Any], fingerprint: dict[str, Any] | None, wants_result: bool
) -> None:
    row = standing if fingerprint is None else {**standing, "fingerprint": fingerprint}
    with watched() as seen:
        request = {"key": "o-1", "fingerprint": "f", "returnResult": wants_result}
        answer = Guard(GUARD, Table(row)).handle(request)
    seen.check()
    assert answer["proceed"] is False
    assert answer["reason"] in ("conflict", "parked", "duplicate")
    assert (answer["reason"] == "conflict") == (fingerprint == {"S": ""})
