"""What the simulator asks of its machines, whatever they are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineSpec:
    """A machine to bring up."""

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
    """Where it answered before; kept over a stop if it is still free."""


class Machines(Protocol):
    """A back end. Every call may be repeated; a machine is known by its id."""

    async def open(self, *, api_port: int, fresh: bool) -> None:
        """Make ready; the API is at this port. With `fresh`, what an earlier simulator left behind is cleared away."""

    async def close(self, *, keep: bool) -> None:
        """Let go of everything; with `keep` the machines' processes and files stay for a simulator started later."""

    @property
    def api_hosts(self) -> tuple[str, ...]:
        """Further addresses of this computer at which the machines look for the API."""

    async def boot(self, spec: MachineSpec) -> Address:
        """SSH answers and onstart runs. A machine that was halted finds its files as it left them."""

    async def adopt(self, spec: MachineSpec) -> Address | None:
        """Take over a machine that an earlier simulator left running; None if there is none."""

    async def halt(self, machine_id: int) -> None:
        """No process of the machine is left and SSH does not answer; its files stay."""

    async def destroy(self, machine_id: int) -> None:
        """No process, no SSH, no file is left."""

    async def authorize(self, machine_id: int, ssh_keys: tuple[str, ...]) -> None:
        """These keys may log in, besides those that the machine itself has written."""

    async def log(self, machine_id: int) -> str:
        """The container's log: what onstart, and whoever wrote to the log target, said."""

    async def telemetry(self, machine_id: int) -> MachineTelemetry:
        """What the machine reports of itself."""

    async def take_traffic(self, machine_id: int) -> tuple[int, int]:
        """Bytes into and out of the machine since this was last asked."""

    async def processes(self, machine_id: int) -> list[int]:
        """The machine's processes, by their ids on this computer."""

    async def refuse_ssh(self, machine_id: int, *, door: str, refuse: bool) -> None:
        """SSH at the `direct` or `proxy` door, or `both`, refuses connections and cuts those it has."""

    async def partition(self, machine_id: int, *, cut: bool) -> None:
        """Nothing passes to or from the machine; its processes go on."""

    async def swap_host_key(self, machine_id: int) -> None:
        """SSH answers with a key that the machine never told."""

    async def fill_disk(self, machine_id: int) -> None:
        """From now on nothing can be written on the machine."""

    async def skew_clock(self, machine_id: int, seconds: float) -> None:
        """Programs started from now on read a wall clock that is wrong by `seconds`."""
