"""examples/systemd and examples/launchd: the command line inside each file runs until it is stopped."""

from __future__ import annotations

import plistlib
import shlex
import shutil
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.support.commands.command_line import PATIENCE_SECONDS
from tests.support.commands.example_runs import EXAMPLES, Person

SYSTEMD, LAUNCHD = EXAMPLES / "systemd", EXAMPLES / "launchd"


def _unit_s_command(person: Person) -> list[str]:
    unit = (SYSTEMD / "stationmaster.service").read_text(encoding="utf-8")
    (line,) = (line for line in unit.splitlines() if line.startswith("ExecStart="))
    return shlex.split(line.partition("=")[2].replace("%h", str(person.folder)))


def _agent_s_command(_: Person) -> list[str]:
    with (EXAMPLES / "launchd" / "org.stationmaster.up.plist").open("rb") as file:
        return list(plistlib.load(file)["ProgramArguments"])


@pytest.mark.parametrize("command_of", [_unit_s_command, _agent_s_command], ids=["systemd", "launchd"])
def test_the_service_answers_and_ends_when_it_is_asked_to(person: Person, command_of: object) -> None:
    assert callable(command_of)
    environ = {**person.environ, "STATIONMASTER_SERVE__PORT": "0"}
    with subprocess.Popen(command_of(person), env=environ, cwd="/", stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert "answers at http://127.0.0.1:" in running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=PATIENCE_SECONDS)
    assert running.returncode == 0


def test_the_unit_is_installed_for_one_person_alone(person: Person) -> None:
    for _ in range(2):
        installed = person.run(SYSTEMD / "install.sh")
        assert installed.code == 0, installed.err
    settings = person.folder / ".config" / "stationmaster" / "environment"
    assert stat.S_IMODE(settings.stat().st_mode) == 0o600
    assert (person.folder / ".config" / "systemd" / "user" / "stationmaster.service").is_file()


def test_systemd_finds_nothing_wrong_with_the_unit(person: Person, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        return  # a check by the tool itself, where it is installed
    person.run(SYSTEMD / "install.sh")
    unit = person.folder / ".config" / "systemd" / "user" / "stationmaster.service"
    verified = person.run("systemd-analyze", "--user", "verify", unit, environ={"XDG_RUNTIME_DIR": str(tmp_path)})
    own = [line for line in verified.err.splitlines() if "stationmaster" in line]
    assert own == []
