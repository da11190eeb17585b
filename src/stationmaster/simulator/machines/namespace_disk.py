"""The disk of a namespace machine: an overlay in memory on this computer's system files; private folders are hidden."""

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
"""The folders of this computer's root that machines see; all others, with homes and secrets, are hidden."""
_LIMIT_BYTES = 2 << 30
"""The disk is in memory; only written data takes memory."""
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
    """Survives stops of its machine, until it is removed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written = path / "up"
        """The machine's changes; modify them from outside only while the machine is down."""

    async def make(self, spec: MachineSpec) -> None:
        """Create the disk with the machine's host keys and programs; does nothing if it exists."""
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
        """Write sshd's settings, the authorized keys and onstart for the next boot."""
        text = " ".join(f"{name}={value}" for name, value in variables.items())
        (self.written / "etc/ssh/sshd_config").write_text(_SSHD_CONFIG.format(variables=text))
        (self.written / "etc/ssh/service_keys").write_text("".join(f"{key}\n" for key in spec.ssh_keys))
        (self.written / "root/onstart.sh").write_text(spec.onstart or "")

    def used_bytes(self) -> int:
        facts = os.statvfs(self.path)
        return (facts.f_blocks - facts.f_bfree) * facts.f_frsize

    async def fill(self) -> None:
        """Shrink the disk to its content, so that it is full."""
        await call("mount", "-o", f"remount,size={self.used_bytes()}", str(self.path))

    async def remove(self) -> None:
        await succeeds("umount", "-l", str(self.path))


def python_inside() -> str:
    """A Python that machines can see: the system's, else this one."""
    return shutil.which("python3", path="/usr/local/bin:/usr/bin") or f"{sys.base_prefix}/bin/python3"


def python_to_show() -> str:
    """The Python folder to mount on machines; empty if the system has a Python."""
    return "" if python_inside().startswith("/usr/") else sys.base_prefix


def _hidden() -> set[str]:
    return {entry.name for entry in Path("/").iterdir() if entry.is_dir()} - _SHOWN | {"root", "tmp", "workspace"}


def _mask(folder: Path) -> None:
    """Hide this computer's folder by an empty one."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)  # whatever our umask is: all users of the machine see it
    os.setxattr(folder, "trusted.overlay.opaque", b"y")
