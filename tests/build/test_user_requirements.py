"""A user's requirements: pinned, read for the runtime, and complete."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from idempotent_consumer_build.problem import CannotBuild
from idempotent_consumer_build.requirements import read_pins
from idempotent_consumer_build.target import Target
from tests.build.support import Workshop
from tests.build.test_user_folder import refused

BOTH = Target("3.13", None)
ARM = Target("3.13", "arm64")
WRAPT = "61eb54e9540ea522c2c4752a57549a83d3c67e6704ed708403d28e067aaf90f0"


def pins(tmp_path: Path, text: str, target: Target = BOTH) -> list[str]:
    path = tmp_path / "requirements.txt"
    path.write_text(text, "utf-8")
    return [pin.line for pin in read_pins(path, target)]


# --- what is read ---


def test_comments_blank_lines_continuations_and_hashes_are_read_as_pip_reads_them(tmp_path: Path) -> None:
    one, two = "1" * 64, "2" * 64
    text = f"""\ufeff# what pip-compile writes
Zebra_Lib==2.0 \\
    --hash=sha256:{two} \\
    --hash=sha256:{one}
    # via -r requirements.in

pricing[fast] == 1.4  # ours
"""
    assert pins(tmp_path, text) == ["pricing==1.4", f"zebra-lib==2.0 --hash=sha256:{one} --hash=sha256:{two}"]


@pytest.mark.parametrize(
    ("marker", "both", "arm"),
    [
        ("python_version >= '3.13'", True, True),
        ("python_version < '3.13'", False, False),
        ("python_full_version < '3.13.3'", False, False),
        ("sys_platform == 'linux' and os_name == 'posix'", True, True),
        ("sys_platform == 'win32' or platform_system == 'Darwin'", False, False),
        ("platform_machine == 'x86_64'", True, False),
        ("platform_machine == 'aarch64'", True, True),
        ("implementation_name == 'cpython' and platform_python_implementation == 'CPython'", True, True),
        ("extra == 'dev'", False, False),
    ],
)
def test_markers_are_those_of_the_function_not_of_the_machine_that_builds(
    tmp_path: Path, marker: str, both: bool, arm: bool
) -> None:
    line = f"pricing==1.4 ; {marker}\n"

    assert (pins(tmp_path, line) == ["pricing==1.4"]) is both
    assert (pins(tmp_path, line, ARM) == ["pricing==1.4"]) is arm


def test_one_package_twice_is_one_if_its_version_is(tmp_path: Path) -> None:
    lines = "pricing==1.4 ; python_version < '3.12'\npricing==1.5 ; python_version >= '3.12'\nPricing==1.5.0\n"

    assert pins(tmp_path, lines) == ["pricing==1.5.0"]
    with pytest.raises(CannotBuild, match=r"pins pricing twice, at 1\.4 and at 1\.5: keep one"):
        pins(tmp_path, "pricing==1.4\npricing==1.5\n")


# --- what is refused ---


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("pricing", "'pricing' pins no version: write pricing==version; `uv pip compile` or `pip-compile` writes"),
        ("pricing>=1.4", "pins no version"),
        ("pricing~=1.4", "pins no version"),
        ("pricing==1.*", "pins no version"),
        ("pricing===1.4", "pins no version"),
        ("pricing==1.4,<2", "pins no version"),
        ("pricing @ https://example.com/pricing-1.4.whl", "names an address; write name==version"),
        ("https://example.com/pricing-1.4.whl", "is an address or a path"),
        ("git+https://example.com/pricing.git", "is an address or a path"),
        ("./pricing", "is an address or a path"),
        ("-r more.txt", "is an option of pip: write all pins into one file"),
        ("-rmore.txt", "write all pins into one file"),
        ("--constraint=more.txt", "write all pins into one file"),
        ("-e .", "is an option of pip: put that code into the folder"),
        ("--extra-index-url https://example.com", "set it in pip's configuration, for instance with PIP_INDEX_URL"),
        ("--pre", "only name==version lines are read here"),
        ("pricing==1.4 --hash=md5:" + "0" * 32, "of pricing==1.4 is not --hash=sha256:…"),
        ("pricing==1.4 --no-binary", "of pricing==1.4 is not --hash=sha256:…"),
        ("pricing=1.4", "is no name==version"),
        ("Idempotent_Consumer==0.4.0", "take Idempotent_Consumer out, as the zip holds the library already"),
    ],
)
def test_a_line_that_pins_no_package_is_refused_with_what_to_do(tmp_path: Path, line: str, reason: str) -> None:
    with pytest.raises(CannotBuild) as problem:
        pins(tmp_path, f"# a comment\n\n{line}\n")

    assert str(problem.value).startswith(f"{tmp_path / 'requirements.txt'}: ")
    assert reason in str(problem.value)


def test_a_requirements_file_that_is_not_there_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    error = refused(workshop, capsys, "--requirements", str(workshop.root / "prod.txt"))

    assert error.startswith(f"cannot read the requirements {workshop.root / 'prod.txt'}: ")


# --- what the library needs as well ---


def test_the_version_that_the_library_has_may_be_pinned_and_is_there_once(workshop: Workshop) -> None:
    workshop.write(
        "requirements.txt", f"wrapt==2.5.2 --hash=sha256:{'0' * 64} --hash=sha256:{WRAPT}\naws_xray_sdk==2.15\n"
    )

    assert workshop.build("--no-bytecode") == 0

    names = set(workshop.contents())
    assert "wrapt/__init__.py" in names
    # An adapter that the shipped zip has no use for; whoever asks for the package gets all of it.
    assert "aws_xray_sdk/ext/requests/patch.py" in names


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("wrapt==2.5.1", "pins wrapt 2.5.1, but the library needs wrapt 2.5.2: pin that version, or leave wrapt out"),
        (
            f"wrapt==2.5.2 --hash=sha256:{'0' * 64}",
            f"does not have, which the library needs: add --hash=sha256:{WRAPT}",
        ),
    ],
)
def test_another_version_or_wheel_of_what_the_library_has_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], line: str, reason: str
) -> None:
    workshop.write("requirements.txt", f"{line}\n")

    assert reason in refused(workshop, capsys)


# --- what packages require ---


def test_what_a_package_requires_must_be_pinned_or_brought_by_the_runtime(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    requires = [
        "Requires-Dist: money>=2",
        "Requires-Dist: botocore",
        "Requires-Dist: urllib3 (>=1.26)",
        "Requires-Dist: python-dateutil",
        "Requires-Dist: wrapt<3",
        "Requires-Dist: colorama; sys_platform == 'win32'",
        "Requires-Dist: tomli; python_version < '3.11'",
        "Requires-Dist: pytest; extra == 'test'",
    ]
    workshop.wheel("pricing", "1.4", {"pricing.py": ""}, metadata=requires)
    workshop.write("requirements.txt", "pricing==1.4\n")

    assert refused(workshop, capsys).splitlines() == [
        f"{workshop.source / 'requirements.txt'} does not fit together:",
        "  pricing 1.4 requires money>=2, which is not pinned",
        "Pin all of it there: `uv pip compile` or `pip-compile` writes such a file",
    ]

    workshop.wheel("money", "2.1", {"money.py": ""})
    workshop.write("requirements.txt", "pricing==1.4\nmoney==2.1\n")
    assert workshop.build("--no-bytecode") == 0
    assert "money.py" in workshop.added()


def test_a_pinned_version_must_be_one_that_is_required(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.wheel("pricing", "1.4", {"pricing.py": ""}, metadata=["Requires-Dist: money>=2", "Requires-Dist: wrapt<2"])
    workshop.wheel("money", "1.9", {"money.py": ""})
    workshop.write("requirements.txt", "pricing==1.4\nmoney==1.9\n")

    assert refused(workshop, capsys).splitlines()[1:-1] == [
        "  pricing 1.4 requires money>=2, but 1.9 is pinned",
        "  pricing 1.4 requires wrapt<2, but 2.5.2 is pinned",
    ]


def test_what_an_extra_requires_counts_where_the_extra_is_asked_for(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.wheel("shop", "1.0", {"shop.py": ""}, metadata=["Requires-Dist: pricing[Fast]"])
    workshop.wheel(
        "pricing",
        "1.4",
        {"pricing.py": ""},
        metadata=[
            "Provides-Extra: fast",
            "Requires-Dist: rapid; extra == 'fast'",
            "Requires-Dist: slow; extra == 'no'",
        ],
    )
    workshop.write("requirements.txt", "pricing==1.4\n")
    assert workshop.build("--no-bytecode") == 0
    workshop.output.unlink()

    for lines in ("pricing[fast]==1.4\n", "pricing==1.4\nshop==1.0\n"):
        workshop.write("requirements.txt", lines)
        assert refused(workshop, capsys).splitlines()[1:-1] == ["  pricing 1.4 requires rapid, which is not pinned"]


def test_boto3_may_be_pinned_but_not_without_the_botocore_that_it_was_released_with(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.wheel("boto3", "1.43.0", {"boto3/__init__.py": ""}, metadata=["Requires-Dist: botocore<1.44,>=1.43"])
    workshop.wheel("botocore", "1.43.0", {"botocore/__init__.py": ""}, metadata=["Requires-Dist: jmespath<2"])
    workshop.write("requirements.txt", "boto3==1.43.0\n")
    assert refused(workshop, capsys).splitlines()[1] == (
        "  boto3 1.43.0 requires botocore<1.44,>=1.43: pin it too, as the version that the runtime brings changes"
    )

    workshop.write("requirements.txt", "boto3==1.43.0\nbotocore==1.43.0\n")
    assert workshop.build("--no-bytecode") == 0
    assert {"boto3/__init__.py", "botocore/__init__.py"} <= set(workshop.added())


def test_a_package_for_another_python_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.wheel("pricing", "1.4", {"pricing.py": ""}, metadata=["Requires-Python: <3.12,>=3.8"])
    workshop.write("requirements.txt", "pricing==1.4\n")

    assert refused(workshop, capsys) == (
        "pricing-1.4-py3-none-any.whl is for Python <3.12,>=3.8, and the function's is 3.13: pin another version, or "
        "choose another --runtime"
    )
    assert workshop.build("--no-bytecode", "--runtime", "python3.11") == 0


def test_a_package_that_would_hide_pythons_own_module_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.wheel("dataclasses", "0.8", {"dataclasses.py": ""})
    workshop.write("requirements.txt", "dataclasses==0.8\n")

    assert refused(workshop, capsys) == (
        "dataclasses.py of dataclasses 0.8 would hide Python's own module dataclasses, as the zip comes first on "
        "sys.path: take dataclasses 0.8 out of the requirements, or pin another version"
    )


def test_a_wheel_is_taken_by_the_hash_that_is_pinned(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    wheel = workshop.wheel("pricing", "1.4", {"pricing.py": ""})
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    workshop.write("requirements.txt", f"pricing==1.4 --hash=sha256:{'0' * 64}\n")
    assert f"{wheel} has none of the hashes that are pinned" in refused(workshop, capsys)

    workshop.write("requirements.txt", f"pricing==1.4 --hash=sha256:{digest}\n")
    assert workshop.build("--no-bytecode") == 0


# --- what cannot be read ---


def test_a_marker_that_cannot_be_compared_is_refused(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    workshop.write("requirements.txt", "pricing==1.4 ; platform_machine ~= 'x'\n")
    path = workshop.source / "requirements.txt"
    assert refused(workshop, capsys).startswith(f'the marker `platform_machine ~= "x"` in {path} cannot be compared: ')

    workshop.wheel("pricing", "1.4", {"pricing.py": ""}, metadata=["Requires-Dist: money; platform_machine ~= 'x'"])
    workshop.write("requirements.txt", "pricing==1.4\n")
    assert refused(workshop, capsys).startswith(
        'the marker `platform_machine ~= "x"` in pricing-1.4-py3-none-any.whl cannot be compared: '
    )


@pytest.mark.parametrize("encoding", ["utf-16", "latin-1"])
def test_requirements_in_another_encoding_are_refused_with_what_to_do(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], encoding: str
) -> None:
    path = workshop.write("requirements.txt", "# für uns\npricing==1.4\n".encode(encoding))

    assert refused(workshop, capsys) == (
        f"cannot read the requirements {path}: save the file as UTF-8 (`>` of Windows PowerShell writes UTF-16)"
    )


# --- modules that hide one another ---


def test_a_package_other_than_its_own_that_holds_a_module_of_the_runtime_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.write("requirements.txt", "pricing==1.4\n")
    for path, name in (("boto3/__init__.py", "boto3"), ("urllib3.py", "urllib3"), ("dateutil/tz.py", "dateutil")):
        workshop.wheel("pricing", "1.4", {"pricing.py": "", path: ""})
        assert refused(workshop, capsys) == (
            f"{path} of pricing 1.4 would hide {name}, which the Lambda runtime brings: take pricing 1.4 out of the "
            "requirements, or pin another version"
        )

    workshop.wheel("python_dateutil", "2.9", {"dateutil/__init__.py": ""})
    workshop.write("requirements.txt", "python-dateutil==2.9\n")
    assert workshop.build("--no-bytecode") == 0


@pytest.mark.parametrize("path", ["util/__init__.py", "util/tools.py"])
def test_a_module_of_one_package_beside_a_folder_of_modules_of_another_is_refused(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], path: str
) -> None:
    workshop.wheel("one", "1.0", {"util.py": ""})
    workshop.wheel("two", "2.0", {path: ""})
    workshop.write("requirements.txt", "one==1.0\ntwo==2.0\n")

    assert refused(workshop, capsys) == (
        f"{path} of two 2.0 collides with util.py of one 1.0: take one 1.0 out of the requirements, or pin another "
        "version, or take two 2.0 out of the requirements, or pin another version"
    )

    workshop.wheel("two", "2.0", {"util/data.json": ""})
    assert workshop.build("--no-bytecode") == 0
