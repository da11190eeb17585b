"""Where things are on a machine. The real paths are the defaults; a machine that is a folder names its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The paths of a machine; `variables` tells them to whatever runs there."""

    root: Path
    home: Path
    temporary: Path
    workspace: Path
    job_root: Path
    host_keys: Path
    container_log: Path
    programs: Path

    def variables(self) -> dict[str, str]:
        """onstart, guard and trackside read these and take the real paths where one is missing."""
        return {
            "HOME": str(self.home),
            "TMPDIR": str(self.temporary),
            "WORKSPACE": str(self.workspace),
            "STATIONMASTER_JOB_ROOT": str(self.job_root),  # else /opt/stationmaster/jobs
            "STATIONMASTER_WORKSPACE": str(self.workspace),  # else /workspace
            "STATIONMASTER_HOST_KEYS": str(self.host_keys),  # the folder of ssh_host_*_key.pub, else /etc/ssh
            "STATIONMASTER_CONTAINER_LOG": str(self.container_log),  # else /proc/1/fd/1
        }

    def make(self) -> None:
        folders = (self.home, self.temporary, self.workspace, self.job_root, self.host_keys, self.programs)
        for folder in (*folders, self.home / ".ssh", self.container_log.parent):
            folder.mkdir(parents=True, exist_ok=True)


def places_under(root: Path) -> Places:
    return Places(
        root=root,
        home=root / "root",
        temporary=root / "tmp",
        workspace=root / "workspace",
        job_root=root / "opt/stationmaster/jobs",
        host_keys=root / "etc/ssh",
        container_log=root / "var/log/container.log",
        programs=root / "usr/local/bin",
    )
