"""Converts an instance's row to a machine: its status, addresses and price."""

from __future__ import annotations

import re

from stationmaster.model import Access, Machine, MachineStatus, SshAccess
from stationmaster.money import ZERO, MicroDollars
from stationmaster.providers.vastai.wire import InstanceRow

# Seen in `status_msg` of machines that never started. The first four are caused by the host, the others by the image.
_FAILURE = re.compile(
    r"oci runtime create failed|error response from daemon|unresolvable cdi devices|docker_build\(\) error"
    r"|manifest .*not found|manifest unknown|pull access denied|unauthorized|no such image",
    re.IGNORECASE,
)
_COMING_UP = (None, "created", "loading", "rebooting", "recycling")
_DOWN = ("exited", "stopped", "frozen")
_LOST = ("offline", "unknown")
_GAVE_UP = "Vast.ai did not start it: outbid, out of credit, or the GPU was taken"


def machine(row: InstanceRow, *, key_path: str | None, job_root: str, fault: str | None = None) -> Machine:
    """The machine of an instance. With a `fault` it counts as failed, regardless of the row."""
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
    """Definite signals first; `actual_status` alone lags behind.

    A machine that has run never counts as failed: its disk may contain a model.
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
    """The direct port first, then the service's proxy; each host only with its own port."""
    endpoints: list[tuple[str, int]] = []
    bindings = (row.ports or {}).get("22/tcp")
    if bindings and row.public_ipaddr:
        endpoints.append((row.public_ipaddr, bindings[0].port))
    if row.ssh_host and row.ssh_port and row.actual_status not in _COMING_UP:
        # With Jupyter the proxy's SSH port is one higher.
        endpoints.append((row.ssh_host, row.ssh_port + ("jupyter" in (row.image_runtype or ""))))
    return tuple(
        SshAccess(host=host, port=port, user="root", job_root=job_root, key_path=key_path) for host, port in endpoints
    )


def _price(row: InstanceRow, status: MachineStatus) -> MicroDollars:
    """The price per hour while it runs; for a stopped machine the price of its disk."""
    if status is MachineStatus.STOPPED:
        now = row.billed.total if row.billed else None
        return now if now is not None else row.storage_total_cost or ZERO
    return row.dph_total or ZERO
