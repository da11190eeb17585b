"""The disk of a namespace machine: a layer in memory over this computer's system files, everything private masked."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.network import call, succeeds
from stationmaster.simulator.machines.ssh_server import new_host_key
from stationmaster.simulator.machines.stubs import gpu_config, write_nvidia_smi

_SHOWN = frozenset(("bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "var", "opt", "dev", "proc", "sys"))
"""What machines see of this computer's root; everything else, homes and secrets with it, is masked."""
_LIMIT_BYTES = 2 << 30
"""The disk lives in memory, of which only what is written to it is taken."""
_SSHD_CONFIG = """ListenAddress 0.0.0.0
HostKey /etc/ssh/served_host_key
AuthorizedKeysFile /etc/ssh/service_keys .ssh/authorized_keys
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
PermitRootLogin prohibit-password
UseDNS no
Subsystem sftp internal-sftp
MaxStartups 1000:30:2000
SetEnv {variables}
"""


class NamespaceDisk:
    """Lasts over stops of its machine, until it is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = path / "up"
        """What the machine has changed; to be touched from here only while the machine is down."""

    async def make(self, spec: MachineSpec) -> None:
        """A disk with the machine's host keys and programs on it; one that is there already is left as it is."""
        if self.path.is_mount():
            return
        self.path.mkdir(parents=True, exist_ok=True)
        size = min(int(spec.disk_gb * 1e9), _LIMIT_BYTES)
        await call("mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(self.path))
        for name in ("up", "wk", "root"):
            (self.path / name).mkdir()
        for name in (*sorted(_hidden()), "etc/ssh", "var/log", "opt"):
            _mask(self.written / name)
        (self.written / "tmp").chmod(0o1777)
        (self.written / "usr/local/bin").mkdir(parents=True)
        (self.written / "var/log/lastlog").touch()
        host_key = self.written / "etc/ssh/ssh_host_ed25519_key"
        new_host_key(host_key)
        shutil.copy2(host_key, host_key.with_name("served_host_key"))
        gpus = gpu_config(spec, marker=None)
        write_nvidia_smi(self.written / "usr/local/bin", gpus, python=python_inside(), seen_as="/usr/local/bin")

    def write_settings(self, spec: MachineSpec, variables: dict[str, str]) -> None:
        """The SSH server's settings, the service's keys and onstart, for the next boot."""
        text = " ".join(f"{name}={value}" for name, value in variables.items())
        (self.written / "etc/ssh/sshd_config").write_text(_SSHD_CONFIG.format(variables=text))
        (self.written / "etc/ssh/service_keys").write_text("".join(f"{key}\n" for key in spec.ssh_keys))
        (self.written / "root/onstart.sh").write_text(spec.onstart or "")

    def used_bytes(self) -> int:
        facts = os.statvfs(self.path)
        return (facts.f_blocks - facts.f_bfree) * facts.f_frsize

    async def fill(self) -> None:
        """No room is left, without taking any: the disk shrinks to what is on it."""
        await call("mount", "-o", f"remount,size={self.used_bytes()}", str(self.path))

    async def remove(self) -> None:
        await succeeds("umount", "-l", str(self.path))


def python_inside() -> str:
    """A Python that the machines can see: the system's, else this one."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or f"{sys.base_prefix}/bin/python3"


def python_to_show() -> str:
    """The folder to show to machines because the system has no Python; empty when it has one."""
    return "" if python_inside().startswith("/usr/") else sys.base_prefix


def _hidden() -> set[str]:
    return {entry.name for entry in Path("/").iterdir() if entry.is_dir()} - _SHOWN | {"root", "tmp", "workspace"}


def _mask(folder: Path) -> None:
    """An empty folder in place of this computer's."""
    folder.mkdir(mode=0o755, parents=True)
    os.setxattr(folder, "trusted.overlay.opaque", b"y")
