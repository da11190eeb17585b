"""A real, throw-away sshd on a free port of the loopback, with its own keys."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stationmaster.remote.ssh_connection import SshTarget
from tests.support.killing import kill
from tests.support.servers.ports import own_port

_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/authorized_keys
PidFile {folder}/sshd.pid
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PermitRootLogin prohibit-password
UseDNS no
Subsystem sftp internal-sftp
MaxStartups 1000:30:2000
SetEnv {environment}
"""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(slots=True, kw_only=True)
class Sshd:
    folder: Path
    port: int
    process: subprocess.Popen[bytes]

    @property
    def host_key(self) -> str:
        return (self.folder / "host_key.pub").read_text().strip()

    @property
    def client_key(self) -> Path:
        return self.folder / "client_key"

    def settings(self, **changes: object) -> SshTarget:
        """How to get in; `changes` overrule."""
        known: dict[str, object] = {
            "host": "127.0.0.1",
            "port": self.port,
            "user": getpass.getuser(),
            "key_path": self.client_key,
            "host_keys": (self.host_key,),
        }
        return SshTarget(**{**known, **changes})  # type: ignore[arg-type]

    def kill_sessions(self) -> None:
        """Kill -9 the server's side of every open connection; the commands themselves are left alone."""
        for pid in _children(self.process.pid):
            for session in [pid, *_named_sshd(_children(pid))]:
                kill(session)


@contextmanager
def running_sshd(folder: Path, **environ: str) -> Iterator[Sshd]:
    """An sshd that answers, until the block ends; its sessions have `environ`. Skips where none is installed.

    A session's home is a folder of its own: what a developer's shell reads at its start is slow, and no part of a test.
    """
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    port = prepare_sshd(folder, **environ)
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(sshd_command(folder), stderr=log)
    try:
        await_sshd(port, process, folder / "sshd.log")
        yield Sshd(folder=folder, port=port, process=process)
    finally:
        sessions = _children(process.pid)
        process.terminate()
        process.wait(timeout=150)
        for pid in sessions:
            kill(pid)


def sshd_command(folder: Path) -> list[str]:
    """The command of a prepared sshd. Skips where none is installed."""
    program = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    if program is None:
        pytest.skip("sshd is not installed")
    return [program, "-D", "-e", "-f", str(folder / "sshd_config")]


def prepare_sshd(folder: Path, **environ: str) -> int:
    """Write an sshd's keys and config; returns its port."""
    (folder / "home").mkdir()
    variables = {"HOME": folder / "home", "PATH": _PATH, **environ}
    environment = " ".join(f'"{name}={value}"' for name, value in variables.items())
    _make_key(folder / "host_key")
    _make_key(folder / "client_key")
    shutil.copy(folder / "client_key.pub", folder / "authorized_keys")
    port = own_port()
    (folder / "sshd_config").write_text(_CONFIG.format(port=port, folder=folder, environment=environment))
    return port


def _make_key(path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(path)], check=True)


def await_sshd(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Wait until it answers; fails if it ends instead."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise AssertionError(f"sshd does not answer: {log.read_text()}")


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _named_sshd(pids: list[int]) -> list[int]:
    return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text().startswith("sshd")]
