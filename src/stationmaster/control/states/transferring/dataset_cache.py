"""A dataset that stays on a machine for its next jobs. Whatever goes wrong with it, the dataset is sent as ever."""

from __future__ import annotations

from stationmaster.control.flow.policy import Policy
from stationmaster.errors import CommandFailed
from stationmaster.model import Job, SshAccess
from stationmaster.remote.host import Host


def may_be_kept(job: Job, policy: Policy) -> bool:
    """Whether a later job could find it: this computer's own machines go with their job."""
    return policy.cache_bytes > 0 and isinstance(job.machine.access, SshAccess)


async def taken(job: Job, host: Host, archive: str, *, room_bytes: int) -> bool:
    """Whether the dataset lies at `archive`, from an earlier job; its hash is still to be asked for."""
    try:
        return await host.take_kept(archive, job.spec.dataset.sha256, room_bytes=room_bytes)
    except CommandFailed:
        return False


async def kept(job: Job, host: Host, archive: str, policy: Policy) -> None:
    """The dataset, which was verified there, can be taken by later jobs."""
    sha256, most_bytes = job.spec.dataset.sha256, policy.cache_bytes
    try:
        await host.keep(archive, sha256, most_bytes=most_bytes, most_seconds=policy.cache_seconds)
    except CommandFailed:
        pass  # a disk or a folder that does not allow it costs the next job a transfer, and this one nothing
