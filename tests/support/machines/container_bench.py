"""A real podman with a test image, made of one static program, for tests that run containers."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tests.support.capabilities import require

IMAGE = "local/tiny:1"
_APPLETS = ("sh", "cat", "sleep", "kill", "touch", "mkdir", "rm", "ls", "head", "tail", "dd", "echo", "env", "id", "mv")
_ENGINE_CONF = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "none"
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
"""
_STORAGE_CONF = """\
[storage]
driver = "vfs"
graphroot = "{folder}/graph"
runroot = "{folder}/run"
"""


class Podman:
    """An engine with its own store; `environment` makes every podman use it."""

    def __init__(self) -> None:
        require("podman")
        # Short, because the engine makes sockets far below it: with too long a path it waits 20 s for each container.
        self._folder = folder = Path(tempfile.mkdtemp(prefix="pod-"))
        (folder / "containers.conf").write_text(_ENGINE_CONF)
        (folder / "storage.conf").write_text(_STORAGE_CONF.format(folder=folder))
        self.environment = {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        archive = folder / "root.tar"
        _root_file_system(archive)
        self.run("import", str(archive), IMAGE)
        archive.unlink()

    def run(self, *arguments: str) -> str:
        done = subprocess.run(
            ["podman", *arguments],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def containers(self) -> list[str]:
        """Names of every container there is, running or not."""
        return self.run("ps", "--all", "--format", "{{.Names}}").split()

    def close(self) -> None:
        self.run("rm", "--all", "--force", "--time", "0")
        shutil.rmtree(self._folder)


def _root_file_system(archive: Path) -> None:
    busybox = shutil.which("busybox")
    assert busybox is not None
    with tarfile.open(archive, "w") as tar:
        for name in ("bin", "dev", "etc", "proc", "root", "sys", "tmp", "run", "var", "var/tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(folder)
        program = tarfile.TarInfo("bin/busybox")
        content = Path(busybox).read_bytes()
        program.size, program.mode = len(content), 0o755
        tar.addfile(program, io.BytesIO(content))
        for name in _APPLETS:
            applet = tarfile.TarInfo(f"bin/{name}")
            applet.type, applet.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(applet)
