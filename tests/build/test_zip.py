"""What the shipped zip holds, and that each machine builds the same one."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from idempotent_consumer_build import archive, locked
from idempotent_consumer_build.bytecode import bytecode_name
from idempotent_consumer_build.collisions import merged
from idempotent_consumer_build.library import library_part, requirement_parts
from idempotent_consumer_build.problem import CannotBuild
from idempotent_consumer_build.sources import library_files
from idempotent_consumer_build.wheels import wheel_files
from tests.build.support import (
    FUNCTION_ENVIRONMENT,
    ROOT,
    copy_of_the_sources,
    names_in,
    rewrite,
    run,
    runtime_packages,
    unpacked_read_only,
    without_an_index,
)

# --- the same on each machine ---


@pytest.mark.case("T08")
def test_another_folder_umask_locale_and_clock_give_the_same_members(
    wheels: Path, fresh_zip: Path, tmp_path: Path
) -> None:
    elsewhere = copy_of_the_sources(tmp_path / "Zweit kopie")
    for path in elsewhere.rglob("*"):
        if path.is_file():
            path.chmod(0o640)
            os.utime(path, (1_900_000_000, 1_900_000_000))
    (elsewhere / "src" / "idempotent_consumer" / "__pycache__").mkdir(exist_ok=True)
    (elsewhere / "src" / "idempotent_consumer" / "__pycache__" / "plan.cpython-313.pyc").write_bytes(b"stale")
    (tmp_path / "scratch").mkdir()
    environment = os.environ | {
        "LC_ALL": "C",
        "PYTHONHASHSEED": "4711",
        "PYTHONOPTIMIZE": "2",
        "SOURCE_DATE_EPOCH": "1000000000",
        "TMPDIR": str(tmp_path / "scratch"),
        "TZ": "Asia/Kathmandu",
    }
    output = tmp_path / "rebuilt.zip"
    command = [sys.executable, str(elsewhere / "build.py"), "--wheels", str(wheels), "--output", str(output)]

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, umask=0o077, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert archive.entries(output) == archive.entries(fresh_zip)
    assert stat.S_IMODE(output.stat().st_mode) == 0o644
    assert list((tmp_path / "scratch").iterdir()) == []


@pytest.mark.case("T08")
def test_members_are_sorted_and_carry_one_time_and_one_mode(committed_zip: Path) -> None:
    with zipfile.ZipFile(committed_zip) as opened:
        infos = opened.infolist()

    assert [info.filename for info in infos] == sorted({info.filename for info in infos})
    assert {info.date_time for info in infos} == {(1980, 1, 1, 0, 0, 0)}
    assert {oct(info.external_attr >> 16) for info in infos} == {"0o100644"}
    assert {(info.create_system, info.compress_type, info.extra) for info in infos} == {(3, 8, b"")}


def test_a_build_that_changes_no_member_leaves_the_file_alone(
    wheels: Path, fresh_zip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compressed_elsewhere = tmp_path / "other-zlib.zip"
    rewrite(fresh_zip, compressed_elsewhere, level=1)
    before = compressed_elsewhere.read_bytes()

    assert run(wheels, "--output", str(compressed_elsewhere)) == 0

    assert capsys.readouterr().out.startswith("up to date: ")
    assert compressed_elsewhere.read_bytes() == before != fresh_zip.read_bytes()


# --- the check ---


@pytest.mark.case("T08")
def test_check_passes_for_the_committed_zip(
    wheels: Path, committed_zip: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = committed_zip.read_bytes()

    assert run(wheels, "--check") == 0, capsys.readouterr().err

    assert capsys.readouterr().out.startswith("up to date: ")
    assert committed_zip.read_bytes() == before


def other_content(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return data + b"\n" if info.filename == "wrapt/doc.py" else data


def no_module(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return None if info.filename == "wrapt/doc.py" else data


def executable(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    info.external_attr = (0o100755 if info.filename == "wrapt/doc.py" else 0o100644) << 16
    return data


def other_bytecode(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return data[:-1] + b"?" if info.filename == "wrapt/__pycache__/doc.cpython-313.pyc" else data


def no_bytecode(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    return None if info.filename == "wrapt/__pycache__/doc.cpython-313.pyc" else data


def today(info: zipfile.ZipInfo, data: bytes) -> bytes | None:
    if info.filename == "wrapt/doc.py":
        info.date_time = (2030, 1, 2, 3, 4, 6)
    return data


@pytest.mark.parametrize(
    ("tamper", "line"),
    [
        (other_content, "  content  wrapt/doc.py"),
        (no_module, "  missing  wrapt/doc.py"),
        (executable, "  metadata wrapt/doc.py"),
        (today, "  metadata wrapt/doc.py"),
        (other_bytecode, "  content  wrapt/__pycache__/doc.cpython-313.pyc"),
        (no_bytecode, "  missing  wrapt/__pycache__/doc.cpython-313.pyc"),
    ],
    ids=["content", "missing", "mode", "time", "stale bytecode", "missing bytecode"],
)
def test_check_names_the_member_that_was_changed(
    wheels: Path,
    fresh_zip: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    tamper: Callable[[zipfile.ZipInfo, bytes], bytes | None],
    line: str,
) -> None:
    tampered = tmp_path / "tampered.zip"
    rewrite(fresh_zip, tampered, tamper=tamper)

    assert run(wheels, "--check", "--output", str(tampered)) == 1

    assert capsys.readouterr().err.splitlines()[1:-1] == [line]


def test_check_names_added_members(
    wheels: Path, fresh_zip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tampered = tmp_path / "tampered.zip"
    shutil.copyfile(fresh_zip, tampered)
    with zipfile.ZipFile(tampered, "a") as opened:
        opened.writestr("idempotent_consumer/backdoor.py", "print('hello')\n")
        opened.writestr("idempotent_consumer/__pycache__/sourceless.cpython-313.pyc", b"")

    assert run(wheels, "--check", "--output", str(tampered)) == 1

    assert capsys.readouterr().err.splitlines()[1:-1] == [
        "  extra    idempotent_consumer/__pycache__/sourceless.cpython-313.pyc",
        "  extra    idempotent_consumer/backdoor.py",
    ]


def test_check_fails_for_another_order(
    wheels: Path, fresh_zip: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shuffled = tmp_path / "shuffled.zip"
    rewrite(fresh_zip, shuffled, reverse=True)

    assert run(wheels, "--check", "--output", str(shuffled)) == 1

    assert "  order    the members are not sorted" in capsys.readouterr().err


def test_check_fails_for_a_zip_that_is_not_there_or_is_none(
    wheels: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "consumer.zip"
    assert run(wheels, "--check", "--output", str(target)) == 1
    assert "  missing  consumer.zip itself" in capsys.readouterr().err.splitlines()
    assert not target.exists()

    target.write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    assert run(wheels, "--check", "--output", str(target)) == 1
    assert "  broken   consumer.zip itself: File is not a zip file" in capsys.readouterr().err.splitlines()


def test_check_fails_after_a_source_change_and_says_what_to_run(fresh_zip: Path, wheels: Path, tmp_path: Path) -> None:
    elsewhere = copy_of_the_sources(tmp_path / "lambda")
    (elsewhere / "dist").mkdir()
    shutil.copyfile(fresh_zip, elsewhere / "dist" / fresh_zip.name)
    module = elsewhere / "src" / "idempotent_consumer" / "handler.py"
    module.write_text(module.read_text("utf-8") + "\nCHANGED = True\n", "utf-8")
    build = [sys.executable, str(elsewhere / "build.py"), "--wheels", str(wheels)]

    stale = subprocess.run([*build, "--check"], cwd=tmp_path, capture_output=True, text=True, check=False)
    rebuilt = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
    fresh = subprocess.run([*build, "--check"], cwd=tmp_path, capture_output=True, text=True, check=False)

    assert (stale.returncode, rebuilt.returncode, fresh.returncode) == (1, 0, 0)
    assert stale.stderr.splitlines() == [
        "stale: lambda/dist/idempotent-consumer.zip is not what the sources say",
        "  content  idempotent_consumer/__pycache__/handler.cpython-313.pyc",
        "  content  idempotent_consumer/handler.py",
        "run: python lambda/build.py",
    ]
    assert rebuilt.stdout.startswith("built: lambda/dist/idempotent-consumer.zip, ")


# --- what the zip holds ---


def test_the_zip_holds_the_library_and_the_tracing_sdk_and_nothing_else(committed_zip: Path) -> None:
    names = [name for name in names_in(committed_zip) if "__pycache__" not in name]

    assert {name.split("/")[0] for name in names} == {
        "aws_xray_sdk",
        "idempotent_consumer",
        "licenses",
        "wrapt",
    }
    assert {name.split("/")[1] for name in names if name.startswith("aws_xray_sdk/")} == {
        "__init__.py",
        "core",
        "ext",
        "sdk_config.py",
        "version.py",
    }
    assert {name.split("/")[2] for name in names if name.startswith("aws_xray_sdk/ext/")} == {
        "__init__.py",
        "boto_utils.py",
        "botocore",
        "dbapi2.py",
        "httplib",
        "resources",
        "sqlite3",
        "util.py",
    }


def test_each_module_of_the_library_is_in_the_zip_with_its_bytecode(committed_zip: Path) -> None:
    source = ROOT / "lambda" / "src"
    modules = {path.relative_to(source).as_posix() for path in source.rglob("idempotent_consumer/**/*.py")}
    modules = {name for name in modules if not name.startswith("idempotent_consumer/testing/")}
    bytecode = {bytecode_name(name) for name in modules}

    assert {name for name in names_in(committed_zip) if name.startswith("idempotent_consumer/")} == modules | bytecode
    assert "idempotent_consumer/handler.py" in modules


def test_every_member_is_python_or_its_bytecode_or_data_or_a_licence(committed_zip: Path) -> None:
    names = names_in(committed_zip)

    assert [name for name in names if not name.endswith((".py", ".cpython-313.pyc"))] == [
        "aws_xray_sdk/core/sampling/local/sampling_rule.json",
        "aws_xray_sdk/ext/resources/aws_para_whitelist.json",
        "licenses/aws_xray_sdk-2.15.0/LICENSE",
        "licenses/aws_xray_sdk-2.15.0/NOTICE",
        "licenses/wrapt-2.5.2/LICENSE",
    ]
    assert not [name for name in names if "test" in name]


def test_the_zip_stays_within_its_size(committed_zip: Path) -> None:
    assert committed_zip.stat().st_size <= 650_000


def test_tests_run_on_the_versions_that_the_zip_holds() -> None:
    pinned = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    shipped = [f"{locked.name}=={locked.version}" for locked in locked.read_requirements(locked.REQUIREMENTS)]

    assert shipped == ["aws-xray-sdk==2.15.0", "wrapt==2.5.2"]
    assert set(shipped) <= {line.split()[0] for line in pinned if line.strip()}


# --- it runs ---


def test_each_module_compiles(committed_zip: Path, python: str) -> None:
    script = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as opened:
    names = [name for name in opened.namelist() if name.endswith(".py")]
    for name in names:
        compile(opened.read(name), name, "exec", dont_inherit=True)
print(len(names))
"""
    done = subprocess.run([python, "-I", "-c", script, str(committed_zip)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len([name for name in names_in(committed_zip) if name.endswith(".py")])


def test_each_handler_imports_with_nothing_but_the_zip_and_the_runtime(
    committed_zip: Path, tmp_path: Path, python: str
) -> None:
    task = unpacked_read_only(committed_zip, tmp_path / "task")
    before = sorted(task.rglob("*"))
    script = """
import json, sys
sys.path[:0] = [sys.argv[1]]
sys.path.append(sys.argv[2])
from idempotent_consumer import guard, handler, reconciler, starter
import aws_xray_sdk, botocore, wrapt
from aws_xray_sdk.core import patch
patch(["botocore", "httplib", "sqlite3"])
print(json.dumps({
    "handlers": [callable(module.handler) for module in (guard, handler, reconciler, starter)],
    "files": [module.__file__ for module in (aws_xray_sdk, wrapt, botocore)],
    "compiled wrapt": "wrapt._wrappers" in sys.modules,
}))
"""
    # -I -S: no PYTHON* variables, current folder or site-packages; -B: no bytecode, as on a read-only disk.
    command = [python, "-I", "-S", "-B", "-c", script, str(task), str(runtime_packages(tmp_path / "runtime"))]
    environment = FUNCTION_ENVIRONMENT | {
        "BACKOFF_MAX_SECONDS": "900",
        "IDEMPOTENCY_TABLE": "orders-idempotency",
        "QUEUE_URL": "https://sqs.eu-central-1.amazonaws.com/111122223333/orders",
        "RECONCILER_THRESHOLD_SECONDS": "900",
        "STATE_MACHINE_ARN": "arn:aws:states:eu-central-1:111122223333:stateMachine:orders",
        "VISIBILITY_TIMEOUT_SECONDS": "180",
        "WORKFLOW_NAMESPACE": "ingestion",
        "WORKFLOW_RETENTION_SECONDS": "1555200",
    }
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "handlers": [True, True, True, True],
        "files": [
            str(task / "aws_xray_sdk" / "__init__.py"),
            str(task / "wrapt" / "__init__.py"),
            str(tmp_path / "runtime" / "botocore" / "__init__.py"),
        ],
        "compiled wrapt": False,
    }
    assert sorted(task.rglob("*")) == before


# --- what the builder refuses ---


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("fast.cpython-313-x86_64-linux-gnu.so", "is compiled; the zip holds Python alone"),
        ("fast.pyd", "is compiled; the zip holds Python alone"),
        ("notes.txt", "is neither .json nor .py; remove it or extend CARRIED"),
    ],
    ids=["so", "pyd", "txt"],
)
def test_a_file_that_does_not_belong_into_the_zip_is_refused(
    wheels: Path, tmp_path: Path, name: str, reason: str
) -> None:
    elsewhere = copy_of_the_sources(tmp_path / "lambda")
    (elsewhere / "src" / "idempotent_consumer" / name).write_bytes(b"")
    command = [sys.executable, str(elsewhere / "build.py"), "--wheels", str(wheels)]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert done.stderr.strip() == f"cannot build: idempotent_consumer/{name} {reason}" + (
        ", to run on arm64 and on x86_64" if "compiled" in reason else ""
    )
    assert not (elsewhere / "dist").exists()


def test_leftovers_of_tools_and_the_test_kit_stay_out_of_the_zip(tmp_path: Path) -> None:
    package = tmp_path / "idempotent_consumer"
    for name in (
        "__init__.py",
        "plan.py",
        "py.typed",
        ".DS_Store",
        "plan.pyc",
        "__pycache__/x.pyc",
        ".cache/y.py",
        "testing/__init__.py",
        "testing/sample.txt",
    ):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_bytes(b"")

    assert sorted(name for name, _ in library_files(package)) == [
        "idempotent_consumer/__init__.py",
        "idempotent_consumer/plan.py",
    ]


def test_a_wheel_with_another_hash_is_not_used(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "wheels"
    shutil.copytree(wheels, folder)
    forged = next(folder.glob("wrapt-*.whl"))
    forged.write_bytes(forged.read_bytes() + b"\0")
    without_an_index(monkeypatch)

    with pytest.raises(CannotBuild, match="pip could not fetch the wheels"):
        locked.locked_wheels(locked.REQUIREMENTS, folder)


def test_a_new_version_needs_a_new_hash_even_where_the_old_wheel_lies_at_hand(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requirements = tmp_path / "requirements.txt"
    text = locked.REQUIREMENTS.read_text("utf-8")
    requirements.write_text(text.replace("wrapt==2.5.2", "wrapt==2.5.1"), "utf-8")
    without_an_index(monkeypatch)

    with pytest.raises(CannotBuild, match="pip could not fetch the wheels"):
        locked.locked_wheels(requirements, wheels)


def test_an_index_out_of_reach_ends_with_a_message_and_exit_code_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without_an_index(monkeypatch)

    assert run(tmp_path / "empty", "--output", str(tmp_path / "never.zip")) == 2

    error = capsys.readouterr().err
    assert error.startswith("cannot build: pip could not fetch the wheels of ")
    assert "No matching distribution found for aws-xray-sdk==2.15.0" in error
    assert not (tmp_path / "never.zip").exists()


@pytest.mark.parametrize(
    "line",
    [
        "wrapt",
        "wrapt==2.5.2",
        "wrapt>=2.5.2 --hash=sha256:" + "0" * 64,
        "wrapt==2.5.2 --hash=md5:" + "0" * 32,
        "wrapt==2.5.2 ; python_version > '3' --hash=sha256:" + "0" * 64,
    ],
)
def test_a_requirement_without_version_and_hash_is_refused(tmp_path: Path, line: str) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text(f"# a comment\n\n{line}\n", "utf-8")

    with pytest.raises(CannotBuild, match="expected name==version --hash=sha256:"):
        locked.read_requirements(requirements)


def test_a_wheel_without_a_licence_is_refused(tmp_path: Path) -> None:
    wheel = tmp_path / "nameless-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as opened:
        opened.writestr("nameless.py", "")
        opened.writestr("nameless-1.0.dist-info/METADATA", "Name: nameless\n")

    with pytest.raises(CannotBuild, match="holds no licence file to pass on"):
        list(wheel_files(wheel))


def test_one_name_from_two_places_is_refused(wheels: Path, tmp_path: Path) -> None:
    package = tmp_path / "wrapt"
    package.mkdir()
    (package / "__init__.py").write_bytes(b"")

    parts = [library_part(package), *requirement_parts(locked.locked_wheels(locked.REQUIREMENTS, wheels))]

    with pytest.raises(CannotBuild, match=r"wrapt/__init__\.py of wrapt 2\.5\.2, .* collides with wrapt/__init__"):
        merged(parts, "3.13")
