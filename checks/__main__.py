"""The command line: `python -m checks`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from checks.catalogue import CHECKS, Check
from checks.problem import CannotRun
from checks.runner import run, write

_END = """\
Exit codes: 0 all well, 1 problems, 2 a check could not run, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if unknown := set(options.names) - {check.name for check in CHECKS}:
        parser.error(f"no check is called {', '.join(sorted(unknown))}; --list names them")
    if options.list:
        for check in CHECKS:
            print(f"{check.name:<20} {check.what}{'' if check.is_fast else ' (not with --fast)'}")
        return 0
    chosen = _chosen(options.names, is_fast=options.fast)
    if left_out := set(options.names) - {check.name for check in chosen}:
        parser.error(f"{', '.join(sorted(left_out))}: not with --fast")
    try:
        status = write(chosen, _say) if options.write else run(chosen, _say)
    except CannotRun as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    if options.fast:
        print(f"Left out by --fast: {', '.join(check.name for check in CHECKS if not check.is_fast)}")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m checks", description="Check the repository without running it.", epilog=_END
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="the checks to make (default: all)")
    parser.add_argument("--list", action="store_true", help="name the checks")
    parser.add_argument("--fast", action="store_true", help="only what takes neither terraform init nor the network")
    parser.add_argument("--write", action="store_true", help="rewrite what is generated, instead of checking")
    return parser


def _chosen(names: Sequence[str], *, is_fast: bool) -> list[Check]:
    named = [check for check in CHECKS if not names or check.name in names]
    return [check for check in named if check.is_fast or not is_fast]


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
