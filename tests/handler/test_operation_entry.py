"""`operation(effect)`: when it is connected, and what it refuses."""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from typing import Any

import pytest

from idempotent_consumer import operation
from idempotent_consumer.aws import Clients
from idempotent_consumer.settings import SettingsError
from tests.handler.operations import KEY, Shop, order
from tests.handler.support import NOTHING_FAILED, Cloud, Context


@pytest.fixture
def shop(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Shop:
    shop = Shop(cloud, monkeypatch)
    for name, value in shop.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(Clients, "create", lambda: cloud.clients)
    return shop


def test_a_handler_runs_its_effect_and_is_made_once(shop: Shop) -> None:
    handler = operation(shop.provider.charge)
    context = Context(shop.cloud, 60_000)
    assert handler({"Records": [order()]}, context) == NOTHING_FAILED
    assert handler({"Records": [order("m-2")]}, context) == NOTHING_FAILED
    assert shop.provider.keys == [KEY]


def test_inside_lambda_a_wrong_environment_stops_it_before_its_first_message(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "payments-worker")
    monkeypatch.setenv("OPERATION_UNCERTAIN", "reconcile")
    operation(shop.provider.charge, shop.provider.find)
    with pytest.raises(SettingsError, match="no reconcile function"):
        operation(shop.provider.charge)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"effect": None}, "operation takes the effect function itself, not NoneType"),
        ({"effect": print, "reconcile": "find"}, "operation takes the reconcile function itself, not str"),
        ({"effect": print, "prepare": 1}, "operation takes the prepare function itself, not int"),
    ],
)
def test_what_cannot_be_called_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        operation(**arguments)


async def awaited(event: Any, key: str) -> None: ...


def iterated(event: Any, key: str) -> Any:
    yield key


async def both(event: Any, key: str) -> Any:
    yield key


class Called:
    async def __call__(self, event: Any, key: str) -> None: ...


@pytest.mark.parametrize("function", [awaited, iterated, both, Called(), partial(awaited, key="k")])
@pytest.mark.parametrize("name", ["effect", "reconcile", "prepare"])
def test_what_only_runs_once_it_is_awaited_is_refused(name: str, function: Any) -> None:
    """It would be taken for applied, and never run."""
    with pytest.raises(TypeError, match=f"operation calls the {name} function, and neither awaits nor iterates"):
        operation(**{"effect": print, name: function})


def test_a_module_with_an_operation_imports_without_the_sdks() -> None:
    code = (
        "import sys\n"
        "from idempotent_consumer import operation\n"
        "handler = operation(lambda event, key: None)\n"
        "assert not {'botocore', 'aws_xray_sdk', 'urllib3'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
