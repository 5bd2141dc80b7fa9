"""Which wheels of a user's requirements go into the zip, and what of them."""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from idempotent_consumer_build import pip
from idempotent_consumer_build.target import Target
from tests.build.support import Workshop, elf
from tests.build.test_user_folder import ELF, refused

ARM = ("--architecture", "arm64")
X86 = ("--architecture", "x86_64")
AARCH64, X86_64 = elf(0xB7), elf(0x3E)
FAST: Mapping[str, str | bytes] = {"fast/__init__.py": "", "fast/_core.abi3.so": AARCH64}


@pytest.fixture
def wants_fast(workshop: Workshop) -> Workshop:
    workshop.write("requirements.txt", "fast==1.0\n")
    return workshop


# --- which ---


@pytest.mark.parametrize(
    "tag",
    [
        "py3-none-any",
        "py2.py3-none-any",
        "py313-none-any",
        "cp313-none-any",
    ],
)
def test_a_pure_wheel_is_taken_for_both_processors(wants_fast: Workshop, tag: str) -> None:
    wants_fast.wheel("fast", "1.0", {"fast.py": ""}, tag=tag)

    assert wants_fast.build("--no-bytecode") == 0
    assert "fast.py" in wants_fast.added()


@pytest.mark.parametrize(
    "tag",
    [
        "cp313-cp313-manylinux2014_aarch64",
        "cp313-cp313-manylinux_2_17_aarch64.manylinux2014_aarch64",
        "cp313-cp313-manylinux_2_28_aarch64",
        "cp313-cp313-manylinux_2_34_aarch64",
        "cp37-abi3-manylinux2014_aarch64",
        "py3-none-manylinux2014_aarch64",
        # What `pip wheel` makes on the function's platform.
        "cp313-cp313-linux_aarch64",
        "py3-none-linux_aarch64",
        "py3-none-any",
    ],
)
def test_wheels_that_run_on_the_functions_linux_are_taken_for_their_processor(wants_fast: Workshop, tag: str) -> None:
    files: Mapping[str, str | bytes] = {"fast/__init__.py": ""} if tag.endswith("any") else FAST
    wants_fast.wheel("fast", "1.0", files, tag=tag)

    assert wants_fast.build("--no-bytecode", *ARM) == 0
    assert set(files) <= set(wants_fast.added())


@pytest.mark.parametrize(
    "tag",
    [
        "cp313-cp313-manylinux2014_x86_64",
        "cp313-cp313-manylinux_2_35_aarch64",
        "cp313-cp313-musllinux_1_2_aarch64",
        "cp313-cp313-linux_x86_64",
        "cp313-cp313-macosx_11_0_arm64",
        "cp313-cp313-win_amd64",
        "cp312-cp312-manylinux2014_aarch64",
        "cp313-cp313t-manylinux2014_aarch64",
        "cp314-abi3-manylinux2014_aarch64",
        "py2-none-any",
        "py314-none-any",
    ],
)
def test_a_wheel_of_another_platform_python_or_abi_is_refused_by_its_tag(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], tag: str
) -> None:
    wheel = wants_fast.wheel("fast", "1.0", FAST, tag=tag)

    error = refused(wants_fast, capsys, *ARM)

    assert (
        f"{wheel} is for {tag}; accepted: py3-none-any, or cp313 or abi3 for manylinux2014_aarch64 or "
        "manylinux_2_17_aarch64 to manylinux_2_34_aarch64, or for linux_aarch64 in --wheels"
    ) in error.splitlines()
    assert error.splitlines()[0].startswith("the index has no wheel of fast==1.0 that fits; accepted: ")


@pytest.mark.parametrize("tag", ["cp313-cp313-manylinux2014_x86_64", "py3-none-manylinux2014_x86_64"])
def test_without_an_architecture_a_compiled_wheel_is_refused_and_the_option_named(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], tag: str
) -> None:
    wheel = wants_fast.wheel("fast", "1.0", FAST, tag=tag)

    error = refused(wants_fast, capsys)

    assert (f"{wheel} is for {tag}; accepted: py3-none-any (pure Python, to run on arm64 and on x86_64)") in error
    assert "If it has compiled wheels, build for one processor: --architecture arm64, or x86_64." in error
    assert "python -m pip wheel --no-deps fast==1.0 --wheel-dir FOLDER" in error


def test_wheels_for_several_processors_lie_side_by_side(wants_fast: Workshop) -> None:
    for machine, compiled in (("aarch64", AARCH64), ("x86_64", X86_64)):
        tag = f"cp313-cp313-manylinux2014_{machine}"
        wants_fast.wheel("fast", "1.0", {"fast/__init__.py": machine, "fast/x.so": compiled}, tag=tag)

    assert wants_fast.build("--no-bytecode", *ARM) == 0
    assert wants_fast.contents()["fast/__init__.py"] == b"aarch64"
    assert wants_fast.build("--no-bytecode", *X86) == 0
    assert wants_fast.contents()["fast/__init__.py"] == b"x86_64"


def test_the_most_special_wheel_that_fits_is_taken_and_of_several_builds_the_latest(wants_fast: Workshop) -> None:
    wants_fast.wheel("fast", "1.0", {"fast.py": "pure"})
    wants_fast.wheel("fast", "1.0", {"fast.py": "old"}, tag="cp37-abi3-manylinux2014_x86_64")
    assert wants_fast.build("--no-bytecode", *X86) == 0
    assert wants_fast.contents()["fast.py"] == b"old"
    wants_fast.wheel("fast", "1.0", {"fast.py": "first"}, tag="2-cp313-cp313-manylinux2014_x86_64")
    wants_fast.wheel("fast", "1.0", {"fast.py": "latest"}, tag="10-cp313-cp313-manylinux2014_x86_64")

    assert wants_fast.build("--no-bytecode", *X86) == 0
    assert wants_fast.contents()["fast.py"] == b"latest"
    assert wants_fast.build("--no-bytecode") == 0
    assert wants_fast.contents()["fast.py"] == b"pure"


def test_a_wheel_for_a_linux_of_no_name_is_the_last_choice_and_pip_is_not_asked_for_it(wants_fast: Workshop) -> None:
    wants_fast.wheel("fast", "1.0", {"fast.py": "by hand"}, tag="cp313-cp313-linux_x86_64")
    assert wants_fast.build("--no-bytecode", *X86) == 0
    assert wants_fast.contents()["fast.py"] == b"by hand"
    wants_fast.wheel("fast", "1.0", {"fast.py": "pure"})

    assert wants_fast.build("--no-bytecode", *X86) == 0
    assert wants_fast.contents()["fast.py"] == b"pure"
    assert not [option for option in Target("3.13", "x86_64").pip_options() if option.startswith("linux")]


def test_the_runtime_decides_which_python_and_which_linux_a_wheel_must_be_for() -> None:
    accepted = {
        version: {str(tag) for tag in Target(version, "x86_64").tags} for version in ("3.11", "3.12", "3.13", "3.14")
    }

    assert "cp312-cp312-manylinux_2_34_x86_64" in accepted["3.12"]
    assert "cp314-cp314-manylinux_2_34_x86_64" in accepted["3.14"]
    assert "cp313-cp313-manylinux1_x86_64" in accepted["3.13"]
    # Python 3.11 runs on Amazon Linux 2, with glibc 2.26.
    assert "cp311-cp311-manylinux_2_26_x86_64" in accepted["3.11"]
    assert "cp311-cp311-manylinux_2_28_x86_64" not in accepted["3.11"]
    for tags in accepted.values():
        assert "py3-none-any" in tags
        assert "cp310-cp310-manylinux2014_x86_64" not in tags


def test_pip_is_asked_for_what_is_accepted() -> None:
    assert Target("3.12", None).pip_options() == [
        *("--python-version", "3.12", "--platform", "any", "--implementation", "py", "--abi", "none")
    ]
    options = Target("3.12", "arm64").pip_options()
    assert options[:10] == [
        *("--python-version", "3.12", "--implementation", "cp"),
        *("--abi", "cp312", "--abi", "abi3", "--abi", "none"),
    ]
    platforms = options[11::2]
    assert platforms[0] == "manylinux_2_34_aarch64"
    assert platforms[-2:] == ["manylinux_2_17_aarch64", "manylinux2014_aarch64"]


def test_pip_reads_pins_without_markers_and_is_not_asked_for_what_is_at_hand(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = workshop.wheel("pinned", "2.0", {"pinned.py": ""}).read_bytes()
    (workshop.wheels / "pinned-2.0-py3-none-any.whl").unlink()
    workshop.wheel("here", "1.0", {"here.py": ""})
    digest = hashlib.sha256(data).hexdigest()
    lines = [
        "here==1.0",
        "other==3.0 ; sys_platform == 'win32'",
        f"pinned==2.0 ; python_version > '3' --hash=sha256:{digest}",
        "plain[x]==1.0 ; platform_machine == 'aarch64'",
    ]
    workshop.write("requirements.txt", "\n".join(lines))
    asked: list[tuple[str, bool]] = []

    def download(requirements: Path, folder: Path, target: list[str], names: str, *, hashed: bool) -> None:
        asked.append((requirements.read_text("utf-8"), hashed))
        (folder / "pinned-2.0-py3-none-any.whl").write_bytes(data)
        workshop.wheel("plain", "1.0", {"plain.py": ""})

    monkeypatch.setattr(pip, "download", download)

    assert workshop.build("--no-bytecode") == 0
    assert asked == [(f"pinned==2.0 --hash=sha256:{digest}\n", True), ("plain==1.0\n", False)]
    assert workshop.build("--no-bytecode") == 0
    assert len(asked) == 2


def test_a_download_says_what_it_fetches(wants_fast: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    assert wants_fast.build("--no-bytecode") == 2

    assert capsys.readouterr().out == "pip fetches fast 1.0 …\n"


# --- what of them ---


def test_a_wheel_gives_its_files_its_licences_and_what_describes_it(wants_fast: Workshop) -> None:
    wants_fast.wheel(
        "fast",
        "1.0",
        {
            "fast/__init__.py": "",
            "fast/__init__.pyi": "",
            "fast/data.bin": b"\x00",
            "fast/old.pyc": "",
            "fast-1.0.dist-info/WHEEL": "",
            "fast-1.0.dist-info/entry_points.txt": "",
            "fast-1.0.dist-info/LICENSE.txt": "",
            "fast-1.0.dist-info/licenses/AUTHORS": "",
            "fast-1.0.dist-info/licenses/vendored/LICENSE": "",
            "fast-1.0.data/purelib/extra.py": "",
            "fast-1.0.data/scripts/fast": "",
            "fast-1.0.data/data/share/fast.1": "",
        },
    )

    assert wants_fast.build("--no-bytecode") == 0

    assert "fast/old.pyc" not in wants_fast.contents()
    assert [name for name in wants_fast.added() if name != "stock.py"] == [
        "extra.py",
        "fast-1.0.dist-info/METADATA",
        "fast-1.0.dist-info/entry_points.txt",
        "fast/__init__.py",
        "fast/__init__.pyi",
        "fast/data.bin",
        "licenses/fast-1.0/AUTHORS",
        "licenses/fast-1.0/LICENSE.txt",
        "licenses/fast-1.0/vendored/LICENSE",
    ]


@pytest.mark.parametrize("name", ["fast/_core.so", "fast/_core.pyd", "fast.libs/libz.so.1", "fast/bin/tool"])
@pytest.mark.parametrize("options", [(), ARM], ids=["both", "arm64"])
def test_a_wheel_that_says_it_runs_anywhere_but_holds_compiled_files_is_refused(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], name: str, options: tuple[str, ...]
) -> None:
    wants_fast.wheel("fast", "1.0", {"fast/__init__.py": "", name: ELF})

    assert refused(wants_fast, capsys, *options).startswith(
        f"fast-1.0-py3-none-any.whl holds {name}, which is compiled, although its name says that it runs on any "
    )


@pytest.mark.parametrize(
    ("tag", "options", "compiled"),
    [
        ("cp313-cp313-manylinux2014_aarch64", ARM, X86_64),
        ("cp313-cp313-manylinux2014_x86_64", X86, AARCH64),
        ("cp313-cp313-linux_aarch64", ARM, X86_64),
    ],
    ids=["aarch64", "x86_64", "made by hand"],
)
def test_a_wheel_with_code_for_another_processor_than_its_name_says_is_refused(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], tag: str, options: tuple[str, ...], compiled: bytes
) -> None:
    wants_fast.wheel("fast", "1.0", {"fast/__init__.py": "", "fast/_core.so": compiled}, tag=tag)

    assert refused(wants_fast, capsys, *options).startswith(
        f"fast-1.0-{tag}.whl holds fast/_core.so, which is compiled for another processor than {tag.split('_', 1)[1]}: "
    )


@pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "fast\\evil.py", "fast/a\nb.py"])
def test_a_wheel_with_a_name_that_leads_elsewhere_is_refused(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    wants_fast.wheel("fast", "1.0", {name: ""})

    assert refused(wants_fast, capsys).endswith(
        " in fast-1.0-py3-none-any.whl is no name for a file of the zip: rename it"
    )


def test_a_broken_wheel_is_refused(wants_fast: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    wants_fast.wheel("fast", "1.0", {}).write_bytes(b"PK")
    assert refused(wants_fast, capsys) == (
        "fast-1.0-py3-none-any.whl is broken (File is not a zip file): delete it, or give another copy"
    )


def damaged(data: bytes) -> bytes:
    at = data.index(b"fast.py") + len(b"fast.py")
    return data[:at] + b"\xff" * 8 + data[at + 8 :]


def changed_headers(data: bytes, entry: int, value: int) -> bytes:
    """Sets a byte of each entry of the zip's list of members."""
    changed, at = bytearray(data), data.find(b"PK\x01\x02")
    while at >= 0:
        changed[at + entry] = value
        at = data.find(b"PK\x01\x02", at + 1)
    return bytes(changed)


def encrypted(data: bytes) -> bytes:
    changed = bytearray(changed_headers(data, 8, 1))
    at = data.find(b"PK\x03\x04")
    while at >= 0:
        changed[at + 6] = 1
        at = data.find(b"PK\x03\x04", at + 1)
    return bytes(changed)


def unknown_method(data: bytes) -> bytes:
    return changed_headers(data, 10, 93)


@pytest.mark.parametrize(
    ("breaks", "reason"),
    [(damaged, "Error -3"), (encrypted, "encrypted"), (unknown_method, "compression")],
    ids=["damaged", "encrypted", "unknown compression"],
)
@pytest.mark.parametrize("options", [(), ("--check",)], ids=["build", "check"])
def test_a_wheel_that_cannot_be_unpacked_is_refused(
    wants_fast: Workshop,
    capsys: pytest.CaptureFixture[str],
    breaks: Callable[[bytes], bytes],
    reason: str,
    options: tuple[str, ...],
) -> None:
    wheel = wants_fast.wheel("fast", "1.0", {})
    with zipfile.ZipFile(wheel, "a", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("fast.py", "x = 1\n" * 100)
    wheel.write_bytes(breaks(wheel.read_bytes()))

    error = refused(wants_fast, capsys, *options)

    assert error.startswith("fast-1.0-py3-none-any.whl is broken (")
    assert reason in error


# --- what pip says ---


def test_of_what_pip_says_the_errors_are_shown_and_why_the_index_is_out_of_reach() -> None:
    said = """\
WARNING: Location 'old' is ignored: it is neither a file nor a directory.
WARNING: Retrying (Retry(total=1)) after connection broken by 'a name that is not known': /simple/fast/
WARNING: Retrying (Retry(total=0)) after connection broken by 'no route to host': /simple/fast/
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES
    fast==1.0:
        Expected sha256 1
WARNING: Discarding it.
ERROR: No matching distribution found for fast==1.0
[notice] A new release of pip is available
"""
    assert pip.errors(said).splitlines() == [
        "WARNING: Retrying (Retry(total=0)) after connection broken by 'no route to host': /simple/fast/",
        "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES",
        "    fast==1.0:",
        "        Expected sha256 1",
        "ERROR: No matching distribution found for fast==1.0",
    ]
    assert pip.errors("WARNING: a\nNo module named pip\n") == "WARNING: a\nNo module named pip"


def test_a_place_for_wheels_that_is_not_there_is_no_reason_that_is_shown(
    wants_fast: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", str(wants_fast.root / "nowhere"))

    error = refused(wants_fast, capsys)

    assert "ERROR: No matching distribution found for fast==1.0" in error
    assert "nowhere" not in error
