"""The builder knows whether the zip has the handler that the function will be told to call."""

from __future__ import annotations

import pytest

from idempotent_consumer_build.entry import check_handler
from idempotent_consumer_build.problem import CannotBuild
from tests.build.support import Workshop
from tests.build.test_user_folder import refused


@pytest.mark.parametrize(
    "source",
    [
        b"def handler(event, context): ...",
        b"handler = pipeline(plan)",
        b"handler: Handler = pipeline(plan)",
        b"plan, handler = make()",
        b"from shop import handler",
        b"from shop import entry as handler",
        b"from shop import *",
        b"import handler",
        b"class handler: ...",
        b"if True:\n    handler = one\nelse:\n    handler = two",
        b"try:\n    import x\nexcept ImportError:\n    handler = two",
        b"with x:\n    handler = one",
        b"match x:\n    case 1:\n        handler = one",
    ],
)
def test_a_handler_is_found_however_the_module_defines_it(source: bytes) -> None:
    check_handler("stock.handler", {"stock.py": source})


@pytest.mark.parametrize(
    ("handler", "path"),
    [
        ("stock.handler", "stock/__init__.py"),
        ("shop.stock.handler", "shop/stock.py"),
        ("shop/stock.handler", "shop/stock.py"),
    ],
)
def test_a_handler_may_be_in_a_package(handler: str, path: str) -> None:
    check_handler(handler, {path: b"handler = 1"})


@pytest.mark.parametrize(
    ("handler", "source", "reason"),
    [
        ("stock.handler", b"def plan(event): ...", "the handler is stock.handler, but stock.py defines no handler"),
        ("stock.handler", b"handler: Handler", "stock.py defines no handler"),
        ("stock.handler", b"def f():\n    handler = 1", "stock.py defines no handler"),
        ("stock.handler", b"class C:\n    def handler(self): ...", "stock.py defines no handler"),
        ("stock.handler", b"async def handler(e, c): ...", "is an async function, which Lambda does not await"),
        ("stock.handler", b"def handler(", "the handler's module stock.py does not compile: "),
        ("shop.handler", b"", "the zip holds neither shop.py nor shop/__init__.py"),
        ("stock", b"", "the handler 'stock' is not module.function, as in stock.handler"),
        ("stock.", b"", "is not module.function"),
    ],
)
def test_a_handler_that_is_not_there_is_refused(handler: str, source: bytes, reason: str) -> None:
    with pytest.raises(CannotBuild) as problem:
        check_handler(handler, {"stock.py": source})

    assert reason in str(problem.value)


def test_the_builder_refuses_and_takes_a_handler(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(workshop, capsys, "--handler", "stock.handle") == (
        "the handler is stock.handle, but stock.py defines no handle"
    )
    assert workshop.build("--no-bytecode", "--handler", "stock.handler") == 0
    assert workshop.build("--no-bytecode", "--handler", "idempotent_consumer.handler.handler") == 0
