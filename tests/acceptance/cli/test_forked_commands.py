"""The server that forks the commands of all tests: a command ends with its caller, and hears its caller's signals."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.commands.cli_runs import Home
from tests.support.commands.client import ForkedCommand
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.machines.own_hosts import is_alive
from tests.support.waiting import until

WATCH = ("jobs", "--watch", "--interval", "3600")


def test_a_command_whose_caller_is_gone_is_killed(home: Home) -> None:
    with Path(os.devnull).open("r+") as nothing:
        streams = [nothing.fileno()] * 3
        address = str(command_server().address)
        with ForkedCommand(address, WATCH, environ=home.environ, cwd=str(home.folder), streams=streams) as command:
            assert is_alive(command.pid)
    until(lambda: not is_alive(command.pid), "the end of the command")


def test_a_signal_to_the_caller_reaches_the_command(home: Home) -> None:
    with home.start(*WATCH) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline().startswith("ID ")
        watching.send_signal(signal.SIGINT)
        assert watching.wait(PATIENCE_SECONDS) == 0
