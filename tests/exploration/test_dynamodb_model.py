"""The model of DynamoDB answers as the emulators do, but for the differences that are listed.

EXPLORE_DIFFERENTIAL_SEEDS: how many random lives are compared.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from moto import mock_aws

from idempotent_consumer import calls
from local.emulator import Emulator
from tests.exploration import statements
from tests.exploration.comparison import METHODS, Comparison, Emulated, Found, Request
from tests.exploration.differences import DIFFERENCES, MINISTACK, MOTO, Difference
from tests.exploration.random_life import Life
from tests.exploration.random_variations import Variations

SEEDS = int(os.environ.get("EXPLORE_DIFFERENTIAL_SEEDS", "30"))
STEPS = 40


class MotoStatements:
    """moto knows no UPDATE with several SETs: it is sent the UpdateItem that does the same."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def send(self, operation: str, request: Request) -> Any:
        if operation != "BatchExecuteStatement":
            return getattr(self._client, METHODS[operation])(**request)
        return {"Responses": [self._execute(each) for each in request["Statements"]]}

    def _execute(self, given: Request) -> dict[str, Any]:
        statement = statements.read(given["Statement"])
        values = dict(zip(statement.sets, given["Parameters"], strict=False))
        sets = ", ".join(f"#{name} = :{name}" for name in statement.sets)
        removes = ", ".join(f"#{name}" for name in statement.removes)
        names = (*statement.sets, *statement.removes, statement.keys[0])
        try:
            self._client.update_item(
                TableName=statement.table,
                Key=statement.key(given["Parameters"]),
                UpdateExpression=f"SET {sets} REMOVE {removes}",
                ConditionExpression=f"attribute_exists(#{statement.keys[0]})",
                ExpressionAttributeNames={f"#{name}": name for name in names},
                ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
            )
        except ClientError as error:
            return {"Error": {"Code": error.response["Error"]["Code"].removesuffix("Exception")}}
        return {}


@pytest.fixture(scope="module")
def emulators(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Emulated]]:
    with Emulator(tmp_path_factory.mktemp("emulator") / "log") as emulator, mock_aws():
        # Requests that the SDK would not send are among the random ones.
        in_process = boto3.client("dynamodb", config=Config(parameter_validation=False))
        yield [
            Emulated(MOTO, in_process, MotoStatements(in_process).send),
            Emulated(MINISTACK, emulator.client("dynamodb")),
        ]


def explained(found: Found) -> bool:
    return any(found.emulator in each.emulators and each.explains(found) for each in DIFFERENCES)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_answers_and_rows_are_those_of_the_emulators(
    seed: int, emulators: list[Emulated], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "pause", lambda *_: None)
    chance = Random(seed)
    comparison = Comparison(emulators)
    life = Life(chance, comparison.call, comparison.rows)
    variations = Variations(chance, comparison.call)
    for _ in range(STEPS):
        life.step()
        if seed % 2:
            variations.step(comparison.calls[-5:])
    comparison.check_rows()
    assert [found for found in comparison.found if not explained(found)] == []


def test_the_library_sends_nothing_that_dynamodb_would_not_take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "pause", lambda *_: None)
    operations = set()
    for seed in range(100):
        comparison = Comparison([])
        life = Life(Random(seed), comparison.call, comparison.rows)
        for _ in range(STEPS):
            life.step()
        twice = [text for text in comparison.model.complaints if "multiple operations on one item" not in text]
        assert twice == []
        operations |= {operation for operation, _ in comparison.calls}
    assert operations == METHODS.keys() - {"DeleteItem"}


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda difference: difference.why)
def test_a_difference_that_is_listed_is_still_there(difference: Difference, emulators: list[Emulated]) -> None:
    comparison = Comparison(emulators)
    code = ""
    for operation, request in difference.calls:
        code = ""
        comparison.found.clear()
        try:
            comparison.call(operation, request)
        except ClientError as error:
            code = error.response["Error"]["Code"]
    comparison.check_rows()
    assert code == difference.code
    assert {found.emulator for found in comparison.found} == set(difference.emulators)


def test_moto_knows_no_statement_that_sets_several_attributes(emulators: list[Emulated]) -> None:
    moto = emulators[0]
    text = 'UPDATE "ledger" SET "status"=? SET "ttl"=? WHERE "event_id"=?'
    with pytest.raises(AssertionError):
        moto.plain(
            "BatchExecuteStatement",
            {"Statements": [{"Statement": text, "Parameters": [{"S": "sent"}, {"N": "1"}, {"S": "e-1"}]}]},
        )
