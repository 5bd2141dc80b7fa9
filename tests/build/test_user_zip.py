"""A user's folder with the library in one zip: what it holds, the same on each machine, and the limits."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from idempotent_consumer_build import archive, bytecode, cli, make
from tests.build.support import FUNCTION_ENVIRONMENT, ROOT, Workshop, names_in, runtime_packages, unpacked_read_only


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "find_python", lambda version="": None)


# --- what it holds ---


def test_the_folders_content_lies_at_the_root_beside_all_that_the_shipped_zip_holds(
    workshop: Workshop, fresh_zip: Path
) -> None:
    workshop.write("shop/__init__.py")
    workshop.write("shop/rules.py", "LIMIT = 3\n")
    workshop.write("shop/prices.csv", "A-1,4\n")
    workshop.write("LICENSE", "mine\n")

    assert workshop.build() == 0

    assert workshop.added() == [
        "LICENSE",
        "shop/__init__.py",
        "shop/prices.csv",
        "shop/rules.py",
        "stock.py",
    ]
    # Some packages ask importlib.metadata for the version of what they stand on.
    assert "wrapt-2.5.2.dist-info/METADATA" in workshop.contents()
    with zipfile.ZipFile(fresh_zip) as shipped:
        assert {name: workshop.contents()[name] for name in shipped.namelist()} == {
            name: shipped.read(name) for name in shipped.namelist()
        }


def test_hidden_files_bytecode_and_requirements_stay_out(workshop: Workshop) -> None:
    for name in (
        ".env",
        ".git/config.py",
        "__pycache__/stock.cpython-313.pyc",
        "shop/__pycache__/x.py",
        "a.pyc",
        "b.pyo",
    ):
        workshop.write(name, "secret")
    workshop.write("requirements.txt", "# nothing yet\n")
    workshop.write("shop/requirements.txt", "data\n")

    assert workshop.build() == 0

    assert workshop.added() == ["shop/requirements.txt", "stock.py"]


def test_requirements_of_another_name_stay_out_too(workshop: Workshop) -> None:
    workshop.write("requirements.txt", "this is not read\n")
    pins = workshop.write("prod.txt", "# nothing yet\n")

    assert workshop.build("--requirements", str(pins)) == 0

    assert workshop.added() == ["stock.py"]


def test_the_users_module_runs_with_the_library_from_the_zip(
    workshop: Workshop, tmp_path: Path, runtime_python: str
) -> None:
    workshop.write("shop/__init__.py", "from importlib.metadata import version\nVERSION = version('pricing')\n")
    workshop.write("stock.py", "import idempotent_consumer.handler, pricing, shop\nhandler = lambda *_: shop.VERSION\n")
    workshop.write("requirements.txt", "pricing==1.4\n")
    workshop.wheel("pricing", "1.4", {"pricing.py": ""})
    assert workshop.build("--handler", "stock.handler") == 0
    task = unpacked_read_only(workshop.output, tmp_path / "task")
    script = (
        "import sys; sys.path[:0] = sys.argv[1:2]; sys.path += sys.argv[2:]; import stock; print(stock.handler({}, 0))"
    )

    command = [runtime_python, "-I", "-S", "-B", "-c", script, str(task), str(runtime_packages(tmp_path / "runtime"))]
    done = subprocess.run(command, env=FUNCTION_ENVIRONMENT, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("1.4\n", "")


def test_the_verdict_is_one_line_with_path_files_size_and_digest(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], runtime_python: str
) -> None:
    assert workshop.build() == 0

    said = capsys.readouterr()
    files = len(names_in(workshop.output))
    assert said.out == f"built: {archive.summary(workshop.output)}; 1 file of yours: stock.py\n"
    assert f", {files} files, " in said.out
    assert said.err == ""


def test_the_verdict_names_the_first_of_the_users_files(workshop: Workshop, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("Dockerfile", "shop/b.py", "shop/a.py", "tests/t.py", "tests/u.py"):
        workshop.write(name)
    assert workshop.build("--no-bytecode") == 0
    assert workshop.build("--no-bytecode", "--check") == 0

    for line in capsys.readouterr().out.splitlines():
        assert line.endswith("; 6 files of yours: Dockerfile, shop/a.py, shop/b.py, stock.py, tests/t.py, …")


# --- the same on each machine ---


def test_two_copies_of_a_folder_give_the_same_bytes(workshop: Workshop, tmp_path: Path, runtime_python: str) -> None:
    names = ["b.py", "a.py", "Zoo/é.json", "Zoo/y.py"]
    for name in names:
        workshop.write(name, f"'{name}'\n")
    workshop.write("requirements.txt", "pricing==1.4\nzebra==2.0\n")
    workshop.wheel("pricing", "1.4", {"pricing.py": "", "pricing.txt": "x"})
    workshop.wheel("zebra", "2.0", {"zebra/b.py": "", "zebra/a.py": ""})
    assert workshop.build() == 0
    copy = Workshop(tmp_path, tmp_path / "Zweit kopie", tmp_path / "wheels2", tmp_path / "again.zip")
    shutil.copytree(workshop.wheels, copy.wheels)
    for name in reversed([*names, "stock.py", "requirements.txt"]):
        written = copy.write(name, (workshop.source / name).read_bytes())
        written.chmod(0o700)
        os.utime(written, (1_900_000_000, 1_900_000_000))
    environment = os.environ | {"LC_ALL": "C", "PYTHONHASHSEED": "4711", "TZ": "Asia/Kathmandu"}
    command = [sys.executable, str(ROOT / "lambda" / "build.py"), "--source", str(copy.source)]
    command += ["--wheels", str(copy.wheels), "--output", str(copy.output)]

    done = subprocess.run(
        command, cwd=tmp_path, env=environment, umask=0o077, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert copy.output.read_bytes() == workshop.output.read_bytes()


def test_unchanged_content_leaves_the_file_alone_and_a_change_does_not(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert workshop.build() == 0
    os.utime(workshop.output, (1_000_000_000, 1_000_000_000))

    assert workshop.build() == 0
    assert workshop.output.stat().st_mtime == 1_000_000_000
    assert capsys.readouterr().out.splitlines()[-1].startswith("up to date: ")

    workshop.write("stock.py", "handler = print\n")
    assert workshop.build() == 0
    assert workshop.contents()["stock.py"] == b"handler = print\n"


def test_check_tells_whether_the_folder_has_changed_and_how_to_build(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    options = ["--no-bytecode", "--handler", "stock.handler", "--architecture", "arm64"]
    assert workshop.build(*options) == 0
    assert workshop.build(*options, "--check") == 0
    before = workshop.output.read_bytes()
    workshop.write("stock.py", "handler = print\n")
    workshop.write("more.py")
    capsys.readouterr()

    assert workshop.build(*options, "--check") == 1

    assert capsys.readouterr().err.splitlines() == [
        f"stale: {workshop.output} is not what the sources say",
        "  missing  more.py",
        "  content  stock.py",
        f"run: python lambda/build.py --source {workshop.source} --output {workshop.output} --wheels {workshop.wheels} "
        "--architecture arm64 --no-bytecode --handler stock.handler",
    ]
    assert workshop.output.read_bytes() == before


# --- bytecode ---


def test_another_runtime_gets_the_bytecode_of_its_own_python(workshop: Workshop, python: str) -> None:
    version = subprocess.run([python, "-V"], capture_output=True, text=True, check=True).stdout.split()[1]
    digits = "".join(version.split(".")[:2])

    assert workshop.build("--runtime", f"python{'.'.join(version.split('.')[:2])}") == 0

    names = names_in(workshop.output)
    assert f"__pycache__/stock.cpython-{digits}.pyc" in names
    assert {name.split(".")[-2] for name in names if name.endswith(".pyc")} == {f"cpython-{digits}"}


def test_without_the_runtimes_python_the_zip_has_no_bytecode_and_one_line_says_so(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], no_compiler: None
) -> None:
    assert workshop.build() == 0

    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == ["built", "without bytecode"]
    assert said[1].startswith("without bytecode: no Python 3.13 is on this machine")
    assert not [name for name in names_in(workshop.output) if name.endswith(".pyc")]
    assert workshop.build("--check") == 0


def test_without_bytecode_where_none_is_wanted_and_nothing_said_about_it(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    assert workshop.build("--no-bytecode") == 0

    assert len(capsys.readouterr().out.splitlines()) == 1
    assert not [name for name in names_in(workshop.output) if name.endswith(".pyc")]
    with zipfile.ZipFile(workshop.output) as opened:
        assert opened.comment == b""


def test_a_machine_without_the_compiler_keeps_the_bytecode_of_another_one_while_the_sources_are_the_same(
    workshop: Workshop, runtime_python: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.write("requirements.txt", "templates==1.0\n")
    workshop.wheel("templates", "1.0", {"templates/__init__.py": "", "templates/new.py": "class {{ name }}:\n"})
    assert workshop.build() == 0
    before = workshop.output.read_bytes()
    monkeypatch.setattr(make, "find_python", lambda version="": None)
    capsys.readouterr()

    assert workshop.build() == 0
    assert workshop.build("--check") == 0

    said = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in said] == ["up to date", "not compared"] * 2
    assert workshop.output.read_bytes() == before

    workshop.write("stock.py", "handler = print\n")
    assert workshop.build("--check") == 1
    assert workshop.build() == 0
    assert not [name for name in names_in(workshop.output) if name.endswith(".pyc")]


def test_a_users_source_that_does_not_compile_is_refused_but_not_one_of_a_package(
    workshop: Workshop, runtime_python: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workshop.write("requirements.txt", "templates==1.0\n")
    workshop.wheel("templates", "1.0", {"templates/__init__.py": "", "templates/new.py": "class {{ name }}:\n"})
    assert workshop.build() == 0
    assert "templates/__pycache__/__init__.cpython-313.pyc" in names_in(workshop.output)
    assert "templates/__pycache__/new.cpython-313.pyc" not in names_in(workshop.output)

    workshop.write("stock.py", "def handler(event, context)\n    pass\n")
    assert workshop.build() == 2
    assert "does not compile stock.py: " in capsys.readouterr().err


# --- limits ---


@pytest.mark.parametrize(
    ("limit", "state", "size"), [("MOST_ZIPPED", "zipped", 300_000), ("MOST_UNZIPPED", "unzipped", 600_000)]
)
def test_a_zip_that_lambda_would_not_take_is_refused_with_its_size(
    workshop: Workshop,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
    state: str,
    size: int,
) -> None:
    workshop.write("large.bin", os.urandom(size))
    monkeypatch.setattr(archive, limit, size)

    assert workshop.build("--no-bytecode") == 2

    error = capsys.readouterr().err
    assert error.startswith("cannot build: the zip would be ")
    assert f" bytes {state}, and Lambda takes {size:,} " in error
    assert not workshop.output.exists()


def test_lambdas_limits_are_50_and_250_megabytes() -> None:
    assert (archive.MOST_ZIPPED, archive.MOST_UNZIPPED) == (52_428_800, 262_144_000)


# --- the command line ---


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--source", "stock"], "--source needs --output PATH, the zip to write"),
        (["--handler", "stock.handler"], "--handler goes with --source"),
        (["--no-bytecode"], "--no-bytecode goes with --source"),
        (["--runtime", "python3.9"], "invalid choice: 'python3.9'"),
        (["--architecture", "amd64"], "invalid choice: 'amd64'"),
    ],
)
def test_options_that_do_not_go_together_end_with_exit_code_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], reason: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(arguments)

    assert ended.value.code == 2
    assert reason in capsys.readouterr().err


def test_what_is_written_may_not_lie_in_the_folder_that_is_read(
    workshop: Workshop, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = workshop.source / "dist" / "my.zip"

    assert cli.main(["--source", str(workshop.source), "--output", str(inside)]) == 2
    assert capsys.readouterr().err.startswith(f"cannot build: --output {inside} lies in {workshop.source}, so that ")

    assert workshop.build("--wheels", str(workshop.source / "wheels")) == 2
    assert "--wheels" in capsys.readouterr().err
    assert not inside.parent.exists()


def test_an_output_that_is_neither_missing_nor_a_file_is_refused_and_left_alone(
    workshop: Workshop, capsys: pytest.CaptureFixture[str], request: pytest.FixtureRequest
) -> None:
    workshop.output.parent.mkdir()
    os.mkfifo(workshop.output)
    # With a writer, so that whoever reads it all the same does not wait for one.
    writer = os.open(workshop.output, os.O_RDWR)
    request.addfinalizer(lambda: os.close(writer))

    for options in ((), ("--check",)):
        assert workshop.build("--no-bytecode", *options) == 2
        assert capsys.readouterr().err == (
            f"cannot build: --output {workshop.output} is no regular file: name the zip to write\n"
        )
    assert workshop.output.is_fifo()
    assert cli.main(["--output", str(workshop.output)]) == 2
    assert workshop.output.is_fifo()

    assert cli.main(["--source", str(workshop.source), "--output", str(workshop.root)]) == 2
    assert "is a folder: name the zip to write" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
def test_of_a_link_the_file_is_written_that_it_names(workshop: Workshop, there: bool) -> None:
    target = workshop.root / "store" / "real.zip"
    target.parent.mkdir()
    if there:
        target.write_bytes(b"old")
    workshop.output.parent.mkdir()
    workshop.output.symlink_to(target)

    assert workshop.build("--no-bytecode") == 0

    assert workshop.output.is_symlink()
    assert "stock.py" in names_in(target)
    assert list(target.parent.iterdir()) == [target]


def test_an_interrupted_build_leaves_the_old_zip_and_no_draft(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert workshop.build() == 0
    before = workshop.output.read_bytes()
    workshop.write("stock.py", "handler = print\n")

    def interrupted(self: Path, target: Path) -> None:
        assert self.is_file()
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)

    assert workshop.build() == 130
    assert list(workshop.output.parent.iterdir()) == [workshop.output]
    assert workshop.output.read_bytes() == before
    assert capsys.readouterr().err == "interrupted: nothing has been written\n"


def test_the_runtimes_are_those_whose_platform_is_known() -> None:
    from idempotent_consumer_build.target import GLIBC, MACHINES

    assert [f"python{version}" for version in GLIBC] == list(cli.RUNTIMES)
    assert list(MACHINES) == list(cli.ARCHITECTURES)
    assert bytecode.RUNTIME_PYTHON in GLIBC


# --- without a checkout ---


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what pip installs of this project."""
    target = tmp_path_factory.mktemp("installed")
    script = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script, str(target)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next(target.glob("*.whl"))) as wheel:
        wheel.extractall(target / "site")
    return target / "site"


def test_the_builder_works_from_where_it_is_installed(workshop: Workshop, tmp_path: Path, installed: Path) -> None:
    assert workshop.build("--no-bytecode") == 0
    elsewhere = tmp_path / "elsewhere.zip"
    options = ["--source", str(workshop.source), "--wheels", str(workshop.wheels), "--output", str(elsewhere)]

    built = run_installed(installed, tmp_path, *options, "--no-bytecode")

    assert (built.returncode, built.stderr) == (0, "")
    assert elsewhere.read_bytes() == workshop.output.read_bytes()


def test_where_it_is_installed_it_builds_nothing_but_user_zips(tmp_path: Path, installed: Path) -> None:
    done = run_installed(installed, tmp_path)

    assert done.returncode == 2
    assert "say with --source FOLDER what to build" in done.stderr


def run_installed(installed: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "idempotent_consumer_build", *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_shipped_zip_is_built_without_the_package_that_only_user_zips_need(wheels: Path, tmp_path: Path) -> None:
    (tmp_path / "packaging.py").write_text("raise ModuleNotFoundError('hidden', name='packaging')\n", "utf-8")
    (tmp_path / "stock").mkdir()
    command = [sys.executable, str(ROOT / "lambda" / "build.py"), "--wheels", str(wheels)]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, "--output", str(tmp_path / "out.zip"), *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("--check").returncode == 1
    user = run("--source", str(tmp_path / "stock"))
    assert user.returncode == 2
    assert user.stderr.startswith("cannot build: --source needs the package packaging: ")
