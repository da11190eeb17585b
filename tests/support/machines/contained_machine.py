"""A machine that is a container with limits, as most rented ones are: an sshd in it, and this computer's programs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.machines.container_bench import Podman
from tests.support.servers.sshd import Sshd, await_sshd, prepare_sshd, sshd_command

_IMAGE = "local/machine:1"
_FOLDERS = ("dev", "etc", "proc", "root", "sys", "tmp", "run/sshd", "usr", "var/tmp")
_LINKS = ("bin", "sbin", "lib", "lib64")
_USERS = "root:x:0:0:root:/root:/bin/sh\nsshd:x:100:65534::/run/sshd:/usr/sbin/nologin\n"
_FILES = {
    "etc/passwd": _USERS,
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\n",  # without it sshd takes the account for a locked one
}


@contextmanager
def contained_machine(podman: Podman, folder: Path, *limits: str) -> Iterator[Sshd]:
    """A machine whose jobs are in `folder`/jobs, under the engine's `limits`, such as --memory=256m."""
    image = folder / "machine.tar"
    _root_file_system(image)
    podman.run("import", str(image), _IMAGE)
    image.unlink()
    (folder / "jobs").mkdir()
    own_python = Path(sys.executable).parent
    port = prepare_sshd(folder, PATH=f"{own_python}:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
    name = f"machine-{port}"
    mounts = [f"--volume={place}:{place}:ro" for place in _programs()]
    command = ["podman", "run", f"--name={name}", "--rm", "--network=host", "--log-driver=none", *limits]
    with (folder / "sshd.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *mounts, f"--volume={folder}:{folder}", _IMAGE, *sshd_command(folder)],
            env={**os.environ, **podman.environment},
            cwd=folder,  # where the container's monitor leaves a file `oom` when the kernel kills something
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        await_sshd(port, process, folder / "sshd.log")
        yield Sshd(folder=folder, port=port, process=process)
    finally:
        podman.run("rm", "--force", "--time", "0", name)
        process.wait(timeout=60)


def _programs() -> list[str]:
    """Where this computer's programs and this Python are; without those that are below another one."""
    places = {"/usr", sys.prefix, sys.base_prefix, "/etc/ld.so.cache", "/etc/alternatives"}
    kept = [place for place in places if not any(place.startswith(other + "/") for other in places)]
    return sorted(place for place in kept if Path(place).exists())


def _root_file_system(archive: Path) -> None:
    with tarfile.open(archive, "w") as tar:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
            tar.addfile(folder)
        for name in _LINKS:
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        for name, text in _FILES.items():
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(text), 0o644
            tar.addfile(file, io.BytesIO(text.encode()))
