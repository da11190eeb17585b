"""A machine without Docker and drivers behind a real sshd, whose package manager only notes what it is asked for."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.servers.sshd import Sshd, running_sshd

# Whatever this computer has of these, the machine does not.
_ABSENT = {"docker", "podman", "nvidia-smi", "dnf", "apt-get", "apt-cache", "ubuntu-drivers", "modprobe", "systemctl"}
_STAND_INS = {
    "id": 'cat "{folder}/uid"',
    "apt-get": 'echo "apt-get $*" >> "{folder}/asked"\n'
    'case "$*" in *" install "*docker.io*) cp "{folder}/docker" "{folder}/bin/docker" ;; esac',
    "apt-cache": 'grep -qx "$2" "{folder}/known-packages"',
    "ubuntu-drivers": 'echo "ubuntu-drivers $*" >> "{folder}/asked"',
    "modprobe": 'echo "modprobe $*" >> "{folder}/asked"',
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BareMachine:
    folder: Path
    sshd: Sshd

    def reset(self, *, uid: int = 0, has_gpu: bool = False, packages: tuple[str, ...] = ()) -> None:
        """As it was at first: nothing asked for, nothing installed."""
        (self.folder / "uid").write_text(f"{uid}\n")
        (self.folder / "known-packages").write_text("".join(f"{name}\n" for name in packages))
        (self.folder / "asked").write_text("")
        (self.folder / "bin" / "docker").unlink(missing_ok=True)
        vendor = self.folder / "sys/bus/pci/devices/0000:01:00.0/vendor"
        vendor.parent.mkdir(parents=True, exist_ok=True)
        vendor.write_text("0x10de\n" if has_gpu else "0x8086\n")

    @property
    def asked(self) -> list[str]:
        """The recorded calls of its package manager and helpers."""
        return [line.replace("-q -o DPkg::Lock::Timeout=600 ", "") for line in _lines(self.folder / "asked")]


@contextmanager
def bare_machine(folder: Path) -> Iterator[BareMachine]:
    programs = folder / "bin"
    programs.mkdir()
    for place in ("/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            if program.name not in _ABSENT | _STAND_INS.keys() and not (programs / program.name).is_symlink():
                (programs / program.name).symlink_to(program)
    (programs / "python3").unlink(missing_ok=True)
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    for name, text in _STAND_INS.items():
        _write_program(programs / name, text.format(folder=folder))
    _write_program(folder / "docker", "exit 1")
    environ = {"PATH": str(programs), "STATIONMASTER_SYS": str(folder / "sys")}
    (folder / "sshd").mkdir()
    with running_sshd(folder / "sshd", **environ) as sshd:
        machine = BareMachine(folder=folder, sshd=sshd)
        machine.reset()
        yield machine


def _write_program(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()
