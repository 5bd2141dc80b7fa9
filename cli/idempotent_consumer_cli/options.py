"""The options that all commands have, and what they stand for."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from idempotent_consumer_cli.consumer.discovery import find_consumer
from idempotent_consumer_cli.errors import explain
from idempotent_consumer_cli.screen import Screen
from idempotent_consumer_cli.session import Session
from idempotent_consumer_cli.words import SECONDS

INTERRUPTED = 130
_DURATION = re.compile(r"(\d{1,20})([smhd])")

_OPTIONS = (
    click.option("--name", help="The consumer's name, as the module's variable `name` has it."),
    click.option(
        "--terraform-dir",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        help="The folder it was applied from; its outputs name the consumer.",
    ),
    click.option("--region", help="AWS Region; the default as in other AWS tools."),
    click.option("--profile", help="AWS profile; the default as in other AWS tools."),
    click.option("--endpoint-url", help="Where AWS answers, for emulators."),
    click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs."),
)

Command = Callable[..., int]


class Interrupted(Exception):
    """The operator stopped the command; the text says how far it came."""


def operator_command(function: Command) -> Callable[..., None]:
    """Give a command the common options; it is called with session, consumer and screen, and returns its exit code.

    Whatever else ends it, ends it with one line and exit code 2.
    """

    @functools.wraps(function)
    def command(
        name: str | None,
        terraform_dir: Path | None,
        region: str | None,
        profile: str | None,
        endpoint_url: str | None,
        as_json: bool,
        **options: Any,
    ) -> None:
        screen = Screen(as_json=as_json)
        try:
            session = Session(profile, region, endpoint_url)
            consumer = find_consumer(session, name, terraform_dir)
            status = function(session=session, consumer=consumer, screen=screen, **options)
        except click.ClickException:
            raise
        except Interrupted as interruption:
            screen.note(str(interruption))
            status = INTERRUPTED
        except KeyboardInterrupt:
            screen.note("Stopped.")
            status = INTERRUPTED
        except Exception as error:
            raise explain(error) from None
        sys.exit(status)

    for option in reversed(_OPTIONS):
        command = option(command)
    return command


class Duration(click.ParamType):  # type: ignore[type-arg]
    """An option's value such as 90s, 15m, 2h, 3d or 1h30m; gives whole seconds. A bare number is seconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        text = str(value).strip().lower()
        if re.fullmatch("[0-9]{1,20}", text):
            return int(text)
        parts = _DURATION.findall(text)
        if not parts or "".join(number + unit for number, unit in parts) != text:
            self.fail(f"{value!r} is no duration: write 90s, 15m, 2h or 3d", param, ctx)
        return sum(int(number) * SECONDS[unit] for number, unit in parts)


DURATION = Duration()
