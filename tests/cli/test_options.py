from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from idempotent_consumer_cli import main as program
from tests.cli.support import World, run_command_line

COMMANDS = ("status", "inspect", "replay", "pending", "resolve", "release", "reconcile", "verify", "drop")


def test_the_help_lists_the_commands_in_the_order_in_which_they_are_needed() -> None:
    run = run_command_line("--help")
    assert run.exit_code == 0
    listed = [line.split()[0] for line in run.stdout.partition("Commands:\n")[2].splitlines() if line[2:3].strip()]
    assert tuple(listed) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_takes_the_options_of_other_aws_tools(command: str) -> None:
    run = run_command_line(command, "--help")
    assert run.exit_code == 0
    for option in ("--name", "--terraform-dir", "--region", "--profile", "--endpoint-url", "--json"):
        assert f"  {option} " in run.stdout


@pytest.mark.parametrize("command", ["replay", "reconcile", "drop"])
def test_each_command_that_changes_something_can_be_tried_dry(command: str) -> None:
    assert "  --dry-run " in run_command_line(command, "--help").stdout


def test_the_version_is_that_of_the_package() -> None:
    assert run_command_line("--version").stdout == "idempotent-consumer, version 0.5.0\n"


def test_region_and_profile_are_those_that_are_given(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config"
    config.write_text("[profile night]\nregion = eu-west-1\n", encoding="utf-8")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    world.run("status", "--profile", "night")
    world.run("status", "--profile", "night", "--region", "us-east-1")
    regions = [call.region for call in world.calls if call.operation == "GetFunctionConfiguration"]
    assert regions == ["eu-west-1", "us-east-1"]


def test_an_interrupted_command_says_so(world: World) -> None:
    world.on("GetFunctionConfiguration", raises=KeyboardInterrupt())
    run = world.run("pending")
    assert (run.exit_code, run.stdout, run.stderr) == (130, "", "Stopped.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts_as_ctrl_c_does(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    monkeypatch.setattr(program, "main", lambda: os.kill(os.getpid(), number))
    try:
        with pytest.raises(KeyboardInterrupt):
            program.run()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_the_module_runs_as_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["idempotent-consumer", "--version"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 0
