"""Make the Remote that an access describes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from stationmaster.model import Access, LocalAccess, SshAccess
from stationmaster.remote.base import Remote
from stationmaster.remote.local import LocalRemote
from stationmaster.settings import SshSettings

if TYPE_CHECKING:
    from stationmaster.remote.ssh_connection import TransferWay


def connect(access: Access, *, ssh: SshSettings | None = None, way: TransferWay = "auto") -> Remote:
    """Return the Remote, not yet connected."""
    ssh = ssh or SshSettings()
    match access:
        case LocalAccess():
            return LocalRemote(root=access.root, environment=dict(access.environment))
        case SshAccess():
            # asyncssh takes 0.2 s to import: only commands that use SSH pay for it.
            from stationmaster.remote.ssh import SshRemote
            from stationmaster.remote.ssh_connection import SshTarget

            return SshRemote(
                SshTarget(
                    host=access.host,
                    port=access.port or None,
                    user=access.user or None,
                    key_path=None if access.key_path is None else Path(access.key_path),
                    host_keys=access.host_keys,
                    use_config=access.use_config,
                    environment=access.environment,
                    config_path=ssh.config_path,
                    allow_unverified=access.unverified,
                    keepalive_seconds=ssh.keepalive,
                    way=way,
                )
            )
        case _:
            assert_never(access)
