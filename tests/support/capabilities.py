"""What a machine may lack: the only reasons for which a test may be skipped, each with its probe and its remedy."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Capability:
    present: Callable[[], bool]
    remedy: str


def _sshd() -> bool:
    return Path("/usr/sbin/sshd").exists() or shutil.which("sshd") is not None


def _network_namespaces() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    return subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True).returncode == 0


def _another_user() -> bool:
    return os.geteuid() == 0 and shutil.which("setpriv") is not None and shutil.which("unshare") is not None


def _podman() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("busybox") is None:
        return False
    if shutil.which("podman") is None or shutil.which("runc") is None:
        return False
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True).returncode == 0


def _strace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-f", "-e", "trace=execve", "true"], capture_output=True).returncode == 0


def _own_disk() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return subprocess.run(probe, capture_output=True).returncode == 0


def installed_chromium() -> Path | None:
    """Of the two, the shell is the same browser without windows and starts at a third of the cost."""
    programs = (Path("/usr/bin/chromium-headless-shell"), Path("/usr/bin/chromium"))
    return next((program for program in programs if program.exists()), None)


CAPABILITIES: dict[str, Capability] = {
    "chromium": Capability(lambda: installed_chromium() is not None, "install chromium-headless-shell"),
    "own disk": Capability(_own_disk, "run as root on Linux, where file systems may be mounted"),
    "sshd": Capability(_sshd, "install openssh-server"),
    "rsync": Capability(lambda: shutil.which("rsync") is not None, "install rsync"),
    "network namespaces": Capability(_network_namespaces, "run as root on Linux, with iproute2 installed"),
    "podman": Capability(_podman, "run as root on Linux, with podman, runc, catatonit and busybox-static installed"),
    "strace": Capability(_strace, "install strace, where processes may be traced"),
    "systemd": Capability(lambda: shutil.which("systemd-analyze") is not None, "install systemd"),
    "bash-completion": Capability(
        lambda: Path("/usr/share/bash-completion/bash_completion").exists(), "install bash-completion"
    ),
    "bash": Capability(lambda: shutil.which("bash") is not None, "install bash"),
    "zsh": Capability(lambda: shutil.which("zsh") is not None, "install zsh"),
    "fish": Capability(lambda: shutil.which("fish") is not None, "install fish"),
    "tmux": Capability(lambda: shutil.which("tmux") is not None, "install tmux"),
    "another user": Capability(_another_user, "run as root, with util-linux installed"),
}


def require(name: str) -> None:
    """Skip the calling test where the machine lacks a capability; where everything must be there, fail it."""
    capability = CAPABILITIES[name]
    if not capability.present():
        pytest.skip(f"{SKIP_MARK}{name} is missing: {capability.remedy}")


SKIP_MARK = "capability: "
