"""The interface of the simulator's machine back ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    """A machine to start."""

    id: int
    marker: str
    environment: tuple[tuple[str, str], ...]
    onstart: str | None
    ssh_keys: tuple[str, ...]
    api_key: str
    disk_gb: float
    gpu_name: str
    gpu_count: int
    gpu_memory_mb: int
    driver_version: str
    cuda: float
    address: Address | None = None
    """Its previous address; reused after a stop if it is still free."""


class Machines(Protocol):
    """A back end. Every call may be repeated; machines are identified by id."""

    async def open(self, *, api_port: int, fresh: bool) -> None:
        """Prepare; the API listens on this port. With `fresh`, remove what an earlier simulator left."""

    async def close(self, *, keep: bool) -> None:
        """Release everything; with `keep` the machines' processes and files stay for a later simulator."""

    @property
    def api_hosts(self) -> tuple[str, ...]:
        """Further addresses of this computer at which machines reach the API."""

    async def boot(self, spec: MachineSpec) -> Address:
        """Start the machine: SSH answers and onstart runs. A halted machine keeps its files."""

    async def adopt(self, spec: MachineSpec) -> Address | None:
        """Adopt a machine that an earlier simulator left running; None if there is none."""

    async def halt(self, machine_id: int) -> None:
        """Kill the machine's processes and its SSH server; its files stay."""

    async def destroy(self, machine_id: int) -> None:
        """Remove the machine's processes, SSH server and files."""

    async def authorize(self, machine_id: int, ssh_keys: tuple[str, ...]) -> None:
        """Authorize these keys, besides those that the machine has added itself."""

    async def log(self, machine_id: int) -> str:
        """The container's log: output of onstart, and of processes that write to the log."""

    async def telemetry(self, machine_id: int) -> MachineTelemetry:
        """The machine's current metrics."""

    async def take_traffic(self, machine_id: int) -> tuple[int, int]:
        """Bytes into and out of the machine since the last call."""

    async def processes(self, machine_id: int) -> list[int]:
        """The machine's processes, by their pids on this computer."""

    async def refuse_ssh(self, machine_id: int, *, door: str, refuse: bool) -> None:
        """Refuse SSH on the `direct` or `proxy` port, or `both`, and drop open connections."""

    async def partition(self, machine_id: int, *, cut: bool) -> None:
        """Cut the machine's network, or restore it; its processes continue."""

    async def swap_host_key(self, machine_id: int) -> None:
        """Make SSH answer with a host key that the machine never printed."""

    async def fill_disk(self, machine_id: int) -> None:
        """Make all further writes on the machine fail."""

    async def skew_clock(self, machine_id: int, seconds: float) -> None:
        """Shift the wall clock of programs started from now on by `seconds`."""
