"""The unit for a worker: systemd reads the paths in it as they are, whatever characters they have."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from stationmaster.cli.systemd_unit import unit_of
from stationmaster.errors import UserError
from stationmaster.station.checks import WorkerService
from tests.support.capabilities import require

FOLDERS = ["plain", "my home", "100% $HOME", 'it\'s "mine"', "back\\slash; & co"]


def service(folder: Path) -> WorkerService:
    return WorkerService(
        python=sys.executable,
        home=str(folder),
        folder=str(folder),
        environment_file=str(folder / "worker.env"),
        variables=("VASTAI_API_KEY",),
    )


def values(unit: str) -> dict[str, str]:
    """As systemd reads them: `%%` is a percent sign, and `$$` a dollar sign in a command."""
    return {name: value.replace("%%", "%") for name, _, value in (line.partition("=") for line in unit.splitlines())}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_path_arrives_whole(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    found = values(unit_of(service(folder)))
    command = [word.replace("$$", "$") for word in shlex.split(found["ExecStart"])]
    assert command == [sys.executable, "-P", "-m", "stationmaster", "--home", str(folder), "worker"]
    assert (found["WorkingDirectory"], found["EnvironmentFile"]) == (str(folder), f"{folder}/worker.env")


@pytest.mark.parametrize("name", FOLDERS)
def test_systemd_has_nothing_to_say_against_it(tmp_path: Path, name: str) -> None:
    require("systemd")
    folder = tmp_path / name
    folder.mkdir()
    (folder / "worker.env").touch()
    unit = tmp_path / "stationmaster.service"
    unit.write_text(unit_of(service(folder)))
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


def test_a_path_that_no_unit_can_hold_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be written into a systemd unit"):
        unit_of(service(tmp_path / "two\nlines"))
