"""The program: `idempotent-consumer <command>`."""

from __future__ import annotations

import importlib
import signal
from typing import NoReturn

import click

# In the order in which they are needed at night.
COMMANDS = ("status", "inspect", "replay", "pending", "resolve", "release", "reconcile", "verify", "drop")


class _Commands(click.Group):
    """Imports a command only when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"idempotent_consumer_cli.commands.{cmd_name}")
        command: click.Command = module.command
        return command


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="idempotent-consumer")
def main() -> None:
    """See why events of an idempotent consumer are stuck, and put them right.

    Each command names a consumer by --name or --terraform-dir. Exit codes: 0 all is well, 1 something is left to be
    done, 2 bad input or a missing right, 130 interrupted.
    """


def run() -> None:
    """The installed program. SIGTERM and SIGHUP interrupt it as Ctrl-C does, so that it says how far it came."""

    def interrupt(number: int, frame: object) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):  # Windows has no SIGHUP
        signal.signal(number, interrupt)
    main()
