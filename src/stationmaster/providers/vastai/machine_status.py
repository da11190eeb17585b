"""What an instance's row says of the machine: its status by categorical signals, and the ways to reach it."""

from __future__ import annotations

import re

from stationmaster.model import Access, Machine, MachineStatus, SshAccess
from stationmaster.money import ZERO, MicroDollars
from stationmaster.providers.vastai.wire import InstanceRow

# Seen in `status_msg` of machines that never came up. The first four are the host's fault, the others the image's.
_FAILURE = re.compile(
    r"oci runtime create failed|error response from daemon|unresolvable cdi devices|docker_build\(\) error"
    r"|manifest .*not found|manifest unknown|pull access denied|unauthorized|no such image",
    re.IGNORECASE,
)
_COMING_UP = (None, "created", "loading", "rebooting", "recycling")
_DOWN = ("exited", "stopped", "frozen")
_LOST = ("offline", "unknown")
_GAVE_UP = "Vast.ai gave up starting it: outbid, out of credit, or the GPU was taken"


def machine(row: InstanceRow, *, key_path: str | None, job_root: str, fault: str | None = None) -> Machine:
    """Our view of an instance. A `fault` is why it must not be used, whatever the row says."""
    status, message = (MachineStatus.FAILED, fault) if fault else _status(row)
    return Machine(
        provider_id=str(row.id),
        label=row.label or "",
        status=status,
        created_at=row.start_date or 0.0,
        accesses=_accesses(row, key_path=key_path, job_root=job_root),
        price_per_hour=_price(row, status),
        gpu=row.gpu_name,
        gpus=row.num_gpus or 0,
        machine_id=None if row.machine_id is None else str(row.machine_id),
        interruptible=bool(row.is_bid),
        message=message,
    )


def _status(row: InstanceRow) -> tuple[MachineStatus, str | None]:
    """Signals that settle the matter come first; `actual_status` alone lags behind.

    A machine that has run is never called failed: its disk may hold a model.
    """
    actual = row.actual_status
    if actual in _LOST:
        return MachineStatus.OFFLINE, row.status_msg
    if actual in _COMING_UP:
        return _status_before_running(row)
    if actual in _DOWN or row.intended_status == "stopped":
        return MachineStatus.STOPPED, row.status_msg
    if actual == "running":
        return MachineStatus.RUNNING, row.status_msg
    return MachineStatus.UNKNOWN, f"status {actual}"


def _status_before_running(row: InstanceRow) -> tuple[MachineStatus, str | None]:
    failed = MachineStatus.STOPPED if row.has_reported else MachineStatus.FAILED
    if _FAILURE.search(row.status_msg or ""):
        return failed, row.status_msg
    if (row.intended_status, row.cur_state, row.next_state) == ("stopped", "stopped", "stopped"):
        return failed, row.status_msg or _GAVE_UP
    return MachineStatus.CREATING, row.status_msg


def _accesses(row: InstanceRow, *, key_path: str | None, job_root: str) -> tuple[Access, ...]:
    """The machine's own port first, the service's proxy second; the host of one never goes with the other's port."""
    doors: list[tuple[str, int]] = []
    bindings = (row.ports or {}).get("22/tcp")
    if bindings and row.public_ipaddr:
        doors.append((row.public_ipaddr, bindings[0].port))
    if row.ssh_host and row.ssh_port and row.actual_status not in _COMING_UP:
        # With Jupyter the proxy listens for SSH one port further up.
        doors.append((row.ssh_host, row.ssh_port + ("jupyter" in (row.image_runtype or ""))))
    return tuple(
        SshAccess(host=host, port=port, user="root", job_root=job_root, key_path=key_path) for host, port in doors
    )


def _price(row: InstanceRow, status: MachineStatus) -> MicroDollars:
    """What it costs per hour once it runs; of a stopped machine what its disk costs."""
    if status is MachineStatus.STOPPED:
        now = row.billed.total if row.billed else None
        return now if now is not None else row.storage_total_cost or ZERO
    return row.dph_total or ZERO
