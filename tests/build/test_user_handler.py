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
        b"if not TYPE_CHECKING:\n    handler = one",
        b"if TYPE_CHECKING:\n    x = one\nelse:\n    handler = one",
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
        ("stock.handler", b"if TYPE_CHECKING:\n    from x import handler", "stock.py defines no handler"),
        ("stock.handler", b"if typing.TYPE_CHECKING:\n    from x import handler", "stock.py defines no handler"),
        ("stock.handler", b"if __name__ == '__main__':\n    handler = 1", "stock.py defines no handler"),
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


# --- what its modules import ---


@pytest.mark.parametrize(
    ("path", "line"),
    [("stock.py", "from .db import T"), ("db.py", "from . import stock"), ("shop/rules.py", "from ..db import T")],
)
def test_an_import_relative_to_the_zips_root_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], path: str, line: str
) -> None:
    workshop.write("db.py", "T = 1\n")
    workshop.write(path, f"{line}\nhandler = T\n")
    workshop.write("stock.py", (workshop.source / "stock.py").read_bytes() + b"handler = 1\n")

    assert refused(workshop, capsys, "--handler", "stock.handler").startswith(
        f"{path} has `{line}`, which fails when Lambda imports it, as the zip's root is no package: "
    )


def test_relative_imports_within_a_package_or_with_another_way_are_taken(workshop: Workshop) -> None:
    workshop.write("db.py", "T = 1\n")
    workshop.write("shop/rules.py", "from . import prices\nfrom .prices import P\n")
    workshop.write("shop/prices.py", "P = 1\n")
    workshop.write("stock.py", "try:\n    from .db import T\nexcept ImportError:\n    from db import T\nhandler = T\n")

    assert workshop.build("--no-bytecode", "--handler", "stock.handler") == 0


def test_an_import_that_nothing_brings_is_warned_of_in_one_line(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.write("stock.py", "import requests.adapters, json\nfrom yaml import load\nimport shop, boto3, pricing\n")
    workshop.write("shop/__init__.py", "import requests\nfrom . import rules\n")
    workshop.write("shop/rules.py", "import idempotent_consumer, wrapt, tools.a, tomllib\n")
    workshop.write("tools/a.py", "def later():\n    import colorama\n")
    workshop.write("tools/b.py", "try:\n    import orjson\nexcept ImportError:\n    orjson = None\n")
    workshop.write("tools/notes.txt", "import nothing\n")
    workshop.write("requirements.txt", "pricing==1.4\n")
    workshop.wheel("pricing", "1.4", {"pricing.py": "import more"})

    assert workshop.build("--no-bytecode") == 0

    said = capsys.readouterr()
    assert said.err == (
        "warning: neither the zip nor the Lambda runtime has requests (imported by shop/__init__.py), yaml (imported "
        "by stock.py): pin it in requirements.txt, or bring a layer\n"
    )
    assert said.out.startswith("built: ")
    assert workshop.build("--no-bytecode", "--check") == 0


def test_the_standard_library_is_that_of_the_functions_python(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.write("stock.py", "import cgi\n")

    assert workshop.build("--no-bytecode", "--runtime", "python3.12") == 0
    assert capsys.readouterr().err == ""
    assert workshop.build("--no-bytecode", "--runtime", "python3.13") == 0
    assert "has cgi (imported by stock.py)" in capsys.readouterr().err
