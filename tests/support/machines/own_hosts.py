"""Own machines for tests: this computer behind a real sshd, under other names."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stationmaster.config import load_settings
from stationmaster.settings import Settings
from tests.support.servers.sshd import Sshd

LABEL = "sm-ab12cd34-cats-1"


def environ_with_hosts(folder: Path, *hosts: dict[str, Any], trusted: tuple[Sshd, ...] = ()) -> dict[str, str]:
    """The environment of a home below `folder` whose own machines are `hosts`; no file of the person's is read."""
    folder.mkdir(parents=True, exist_ok=True)
    known = "".join(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n" for sshd in trusted)
    (folder / "person_known_hosts").write_text(known)
    config = folder / "ssh_config"
    config.write_text(f"Host *\n  UserKnownHostsFile {folder / 'person_known_hosts'}\n")
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "STATIONMASTER_SSH__CONFIG_PATH": str(config),
        "STATIONMASTER_SSH__HOSTS": json.dumps(hosts),
    }


def settings_with_hosts(folder: Path, *hosts: dict[str, Any], trusted: tuple[Sshd, ...] = ()) -> Settings:
    return load_settings(environ_with_hosts(folder, *hosts, trusted=trusted), folder=folder)


def host_behind(sshd: Sshd, name: str, job_root: Path, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "address": "127.0.0.1",
        "port": sshd.port,
        "key": str(sshd.client_key),
        "job_root": str(job_root),
        **fields,
    }


def is_alive(pid: int) -> bool:
    """Whether it still runs; one that only waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def process_of(label: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that carries a machine's label and would stay for ever."""
    environment = {**os.environ, "STATIONMASTER_MACHINE": label}
    process = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"],
        env=environment,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
