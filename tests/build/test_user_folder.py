"""What may not be in a user's folder: files that do not run, and names that would hide others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from idempotent_consumer_build.collisions import Origin, Part, merged, standard_library
from idempotent_consumer_build.problem import CannotBuild
from tests.build.support import Workshop

ELF = b"\x7fELF\x02\x01\x01"


def refused(workshop: Workshop, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Builds, which must fail, and returns why."""
    capsys.readouterr()
    assert workshop.build("--no-bytecode", *arguments) == 2
    assert not workshop.output.exists()
    error = capsys.readouterr().err
    assert error.startswith("cannot build: ")
    return error.removeprefix("cannot build: ").rstrip("\n")


# --- files ---


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("fast.cpython-313-x86_64-linux-gnu.so", b""),
        ("shop/fast.pyd", b""),
        ("lib/libssl.so.3", b""),
        ("fast.DLL", b""),
        ("fast.dylib", b""),
        ("bin/tool", ELF),
    ],
)
def test_a_compiled_file_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], name: str, data: bytes
) -> None:
    workshop.write(name, data)

    assert refused(workshop, capsys) == (
        f"{name} in {workshop.source} is compiled, for one processor and Python: put the package that it belongs to "
        "into requirements.txt, with its version"
    )


@pytest.mark.parametrize("target", ["stock.py", "shop"])
def test_a_symbolic_link_is_refused_to_a_file_as_to_a_folder(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    workshop.write("shop/__init__.py")
    (workshop.source / "link").symlink_to(target)

    assert refused(workshop, capsys).startswith(f"link in {workshop.source} is a symbolic link, and what it points to")


def test_a_pipe_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(workshop.source / "pipe")

    assert (
        refused(workshop, capsys)
        == f"pipe in {workshop.source} is neither a file nor a folder: move it out of the folder"
    )


@pytest.mark.parametrize("name", ["a\nb.py", "a\\b.py", "a\x7f.txt"])
def test_a_name_that_is_not_the_same_everywhere_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    workshop.write(name)

    assert refused(workshop, capsys) == (f"{name!r} in {workshop.source} is no name for a file of the zip: rename it")


def test_a_name_that_is_no_text_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        Path(os.fsdecode(os.fsencode(workshop.source) + b"/caf\xe9.py")).write_bytes(b"")
    except OSError:
        pytest.skip("this file system has no names but UTF-8, so such a file cannot lie in a folder")

    assert "is no name for a file of the zip" in refused(workshop, capsys)


def test_a_folder_without_python_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    (workshop.source / "stock.py").rename(workshop.source / ".stock.py")
    workshop.write("requirements.txt", "# nothing yet\n")
    assert refused(workshop, capsys) == (
        f"{workshop.source} holds nothing to bundle (hidden files do not count): give the folder that the handler's "
        "module lies in"
    )

    workshop.write("stock.txt")
    assert refused(workshop, capsys) == (
        f"{workshop.source} holds no Python file: give the folder that the handler's module lies in"
    )


def test_a_folder_that_is_not_there_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    (workshop.source / "stock.py").unlink()
    workshop.source.rmdir()

    assert refused(workshop, capsys) == f"{workshop.source} is no folder"


# --- names ---


@pytest.mark.parametrize("path", ["queue.py", "queue/__init__.py", "queue/worker.py"])
def test_a_module_that_would_hide_pythons_own_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    workshop.write(path)

    assert refused(workshop, capsys) == (
        f"{path} of the folder {workshop.source} would hide Python's own module queue, as the zip comes first on "
        "sys.path: rename it"
    )


@pytest.mark.parametrize("path", ["boto3/__init__.py", "urllib3/tools.py", "six.py", "awslambdaric.py", "bootstrap"])
def test_a_module_that_would_hide_one_of_the_runtime_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    workshop.write(path)

    name = path.partition("/")[0].removesuffix(".py")
    assert refused(workshop, capsys).startswith(
        f"{path} of the folder {workshop.source} would hide {name}, which the Lambda runtime brings: rename it, or pin "
    )


@pytest.mark.parametrize(
    ("path", "other"),
    [
        ("idempotent_consumer/mine.py", "idempotent_consumer/__init__.py of the library"),
        ("idempotent_consumer.py", "idempotent_consumer/__init__.py of the library"),
        ("wrapt/notes.txt", "wrapt/__init__.py of wrapt 2.5.2, which the library needs"),
        ("aws_xray_sdk/ext/mine.py", "aws_xray_sdk/__init__.py of aws-xray-sdk 2.15.0, which the library needs"),
        ("Wrapt/notes.txt", "wrapt of wrapt 2.5.2, which the library needs"),
        ("pricing.py", "pricing/__init__.py of pricing 1.4"),
        ("PRICING/notes.txt", "pricing of pricing 1.4"),
    ],
)
def test_a_name_that_another_part_of_the_zip_has_is_refused_naming_both(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], path: str, other: str
) -> None:
    workshop.write("requirements.txt", "pricing==1.4\n")
    workshop.wheel("pricing", "1.4", {"pricing/__init__.py": ""})
    workshop.write(path)

    error = refused(workshop, capsys)

    own = f"{path.partition('/')[0] if path[0].isupper() else path} of the folder {workshop.source}"
    assert own in error and other in error and " collides with " in error
    assert "rename it" in error


def test_data_may_have_any_name(workshop: Workshop) -> None:
    for name in ("json/schema.json", "queue.txt", "boto3/notes.md", "licenses/mine", "shop/queue.py"):
        workshop.write(name)

    assert workshop.build("--no-bytecode") == 0


def test_names_that_differ_in_letter_case_alone_are_refused() -> None:
    part = Part("the folder stock", Origin.FOLDER, {"Shop/a.py": b"", "shop/b.py": b""})

    with pytest.raises(CannotBuild, match="shop and Shop of the folder stock are one name where letter case does not"):
        merged([part], "3.13")


def test_accents_written_in_two_ways_are_one_name() -> None:
    part = Part("the folder stock", Origin.FOLDER, {"caf\u00e9.py": b"", "cafe\u0301.py": b""})

    with pytest.raises(CannotBuild, match="are one name"):
        merged([part], "3.13")


def test_a_file_where_another_part_has_a_folder_is_refused() -> None:
    one = Part("a 1.0", Origin.REQUIREMENT, {"shared/x.txt": b""})
    two = Part("b 1.0", Origin.REQUIREMENT, {"shared": b""})

    with pytest.raises(CannotBuild, match=r"shared of b 1\.0 collides with shared of a 1\.0: take a 1\.0 out of the"):
        merged([one, two], "3.13")


def test_packages_of_one_namespace_live_side_by_side_but_not_in_one_file() -> None:
    one = Part("acme-a 1.0", Origin.REQUIREMENT, {"acme/__init__.py": b"#", "acme/a.py": b""})
    two = Part("acme-b 1.0", Origin.REQUIREMENT, {"acme/__init__.py": b"#", "acme/b.py": b""})
    own = Part("the folder stock", Origin.FOLDER, {"corp/own.py": b""})
    more = Part("corp-a 1.0", Origin.REQUIREMENT, {"corp/a.py": b""})

    assert sorted(merged([one, two, own, more], "3.13")) == [
        "acme/__init__.py",
        "acme/a.py",
        "acme/b.py",
        "corp/a.py",
        "corp/own.py",
    ]
    with pytest.raises(CannotBuild, match=r"acme/a\.py of acme-b 1\.0 collides with acme/a\.py of acme-a 1\.0"):
        merged([one, Part("acme-b 1.0", Origin.REQUIREMENT, {"acme/a.py": b"other"})], "3.13")


def test_the_modules_of_python_are_those_of_the_runtime_not_of_the_python_that_builds() -> None:
    assert {"queue", "json"} <= standard_library("3.11") & standard_library("3.14")
    assert [version for version in ("3.11", "3.12", "3.13", "3.14") if "imp" in standard_library(version)] == ["3.11"]
    assert [version for version in ("3.11", "3.12", "3.13", "3.14") if "cgi" in standard_library(version)] == [
        "3.11",
        "3.12",
    ]
    assert [version for version in ("3.13", "3.14") if "compression" in standard_library(version)] == ["3.14"]


@pytest.mark.parametrize("place", ["", "shop/"])
def test_a_module_beside_a_package_of_its_name_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    workshop.write(f"{place}rules.py")
    workshop.write(f"{place}rules/__init__.py")

    assert refused(workshop, capsys) == (
        f"{place}rules/__init__.py of the folder {workshop.source} would hide {place}rules.py beside it: rename one of "
        "them"
    )


# --- what is no code ---


@pytest.mark.parametrize(
    "name",
    [
        "terraform.tfstate",
        "terraform.tfstate.backup",
        "prod.tfvars",
        "prod.auto.tfvars.json",
        "tls/server.pem",
        "ID.KEY",
        "aws/credentials",
    ],
)
def test_a_secret_is_refused_by_its_name(workshop: Workshop, capsys: pytest.CaptureFixture[str], name: str) -> None:
    workshop.write(name, "secret")

    assert refused(workshop, capsys) == (
        f"{name} in {workshop.source} is a secret or Terraform's state, by its name: move it out of the folder (a "
        "public certificate may be named .crt)"
    )


@pytest.mark.parametrize("name", ["build/old.zip", "money-1.0-py3-none-any.whl"])
def test_an_archive_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str], name: str) -> None:
    workshop.write(name)

    assert refused(workshop, capsys) == (
        f"{name} in {workshop.source} is an archive, in which Python finds no module: move it out of the folder, and "
        "pin packages in requirements.txt"
    )


def test_names_that_only_look_like_a_secrets_are_taken(workshop: Workshop) -> None:
    for name in ("key.py", "credentials.py", "credentials/__init__.py.txt", "bundle.crt", "pem/notes.md", "zip"):
        workshop.write(name)

    assert workshop.build("--no-bytecode") == 0
    assert len(workshop.added()) == 7


def test_what_tools_leave_in_a_folder_stays_out(workshop: Workshop) -> None:
    for name in (
        "stock.egg-info/PKG-INFO",
        "node_modules/cdk/key.pem",
        "shop/node_modules/index.py",
        "env/pyvenv.cfg",
        "env/lib/python3.13/site-packages/certifi/cacert.pem",
    ):
        workshop.write(name)
    (workshop.source / "env" / "python").symlink_to("/usr/bin/python3")

    assert workshop.build("--no-bytecode") == 0
    assert workshop.added() == ["stock.py"]


# --- a folder that is a package ---


def test_a_folder_that_is_itself_a_package_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.write("__init__.py")

    assert refused(workshop, capsys) == (
        f"{workshop.source} is a package (__init__.py), but its content comes to lie at the zip's root: give the "
        "folder that it lies in, and the handler as stock.module.function, or take its __init__.py away"
    )
