"""The command line of the builder."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from idempotent_consumer_build.bytecode import RUNTIME_PYTHON
from idempotent_consumer_build.library import shipped_files
from idempotent_consumer_build.make import Bytecode, Job, build, check
from idempotent_consumer_build.problem import CannotBuild, shown
from idempotent_consumer_build.sources import CHECKOUT

OUTPUT = CHECKOUT.parent / "dist" / "idempotent-consumer.zip"
RUNTIMES = ("python3.11", "python3.12", "python3.13", "python3.14")
ARCHITECTURES = ("arm64", "x86_64")
# Options that say something about a user's own zip alone, as argparse names them.
OF_A_SOURCE = ("requirements", "architecture", "runtime", "no_bytecode", "handler")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line and returns its exit code."""
    options = parse(arguments)
    try:
        refuse_output(options.output or OUTPUT)
        job = source_job(options) if options.source else shipped_job(options)
        return check(job) if options.check else build(job)
    except (CannotBuild, OSError) as problem:
        print(f"cannot build: {problem}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: nothing has been written", file=sys.stderr)
        return 130


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=None if CHECKOUT.is_file() else "python -m idempotent_consumer_build",
        description="Build a Lambda zip of library and requirements, with your own code if you give its folder.",
    )
    add = parser.add_argument
    add("--check", action="store_true", help="compare the zip with a fresh build, write nothing")
    add("--output", type=Path, metavar="PATH", help="the zip (default, without --source: in lambda/dist)")
    add("--wheels", type=Path, metavar="FOLDER", help="keep the wheels here; with all there, pip is not used")
    add = parser.add_argument_group("your own code").add_argument
    add("--source", type=Path, metavar="FOLDER", help="your code: its content comes to lie at the zip's root")
    add("--requirements", type=Path, metavar="FILE", help="your pinned packages (default: FOLDER/requirements.txt)")
    add("--architecture", choices=ARCHITECTURES, help="allow compiled wheels, for this one (default: run on both)")
    add("--runtime", choices=RUNTIMES, help=f"the function's runtime (default: python{RUNTIME_PYTHON})")
    add("--no-bytecode", action="store_true", help="leave the bytecode out, for the same zip on every machine")
    add("--handler", metavar="NAME", help="end 2 if the zip does not define this, as in stock.handler")
    options = parser.parse_args(arguments)
    refuse_combinations(parser, options)
    return options


def refuse_combinations(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    if options.source is not None:
        if options.output is None:
            parser.error("--source needs --output PATH, the zip to write")
        return
    for name in OF_A_SOURCE:
        if getattr(options, name):
            parser.error(f"--{name.replace('_', '-')} goes with --source")
    if not CHECKOUT.is_file():
        parser.error("say with --source FOLDER what to build; the module's own zip is built in its checkout")


def shipped_job(options: argparse.Namespace) -> Job:
    output = options.output or OUTPUT
    again = ["python", shown(CHECKOUT), *([] if output == OUTPUT else ["--output", str(output)])]
    return Job(output, shipped_files(options.wheels), RUNTIME_PYTHON, Bytecode.REQUIRED, shlex.join(again))


def source_job(options: argparse.Namespace) -> Job:
    refuse_places(options)
    try:
        from idempotent_consumer_build.bundle import bundled
        from idempotent_consumer_build.target import Target
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] != "packaging":
            raise
        raise CannotBuild(
            f"--source needs the package packaging: {sys.executable} -m pip install packaging"
        ) from problem
    version = (options.runtime or f"python{RUNTIME_PYTHON}").removeprefix("python")
    target = Target(version, options.architecture)
    content = bundled(options.source, options.requirements, options.wheels, target, options.handler)
    bytecode = Bytecode.NONE if options.no_bytecode else Bytecode.WHERE_POSSIBLE
    if content.warning:
        print(content.warning, file=sys.stderr)
    return Job(options.output, content.members, version, bytecode, command(options), content.foreign, content.own)


def refuse_places(options: argparse.Namespace) -> None:
    """What is written may not lie in the folder that is read: the next build would bundle it."""
    for name in ("output", "wheels"):
        path = getattr(options, name)
        if path is not None and path.resolve().is_relative_to(options.source.resolve()):
            raise CannotBuild(
                f"--{name} {shown(path)} lies in {shown(options.source)}, so that the next build would bundle it: "
                "choose a place outside"
            )


def refuse_output(output: Path) -> None:
    if output.is_dir():
        raise CannotBuild(f"--output {shown(output)} is a folder: name the zip to write")
    if output.exists() and not output.is_file():
        raise CannotBuild(f"--output {shown(output)} is no regular file: name the zip to write")


def command(options: argparse.Namespace) -> str:
    """The command line that builds what these options check."""
    words = ["python", *([shown(CHECKOUT)] if CHECKOUT.is_file() else ["-m", "idempotent_consumer_build"])]
    for name in ("source", "output", "wheels", *OF_A_SOURCE):
        value = getattr(options, name)
        option = f"--{name.replace('_', '-')}"
        words += [option] if value is True else [option, str(value)] if value else []
    return shlex.join(words)
