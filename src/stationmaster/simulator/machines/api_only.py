"""The back end `paper`: instances without machines, which start, bill and end, but have no SSH. For API tests."""

from __future__ import annotations

from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry
from stationmaster.simulator.machines.base import MachineSpec


class ApiOnlyMachines:
    api_hosts: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._logs: dict[int, str] = {}

    async def open(self, *, api_port: int, fresh: bool) -> None:
        pass

    async def close(self, *, keep: bool) -> None:
        pass

    async def boot(self, spec: MachineSpec) -> Address:
        self._logs[spec.id] = self._logs.get(spec.id, "") + f"machine {spec.id} is up\n"
        return Address(direct_host="127.0.0.1", direct_port=9, proxy_host="127.0.0.1", proxy_port=9)

    async def adopt(self, spec: MachineSpec) -> Address | None:
        return spec.address

    async def halt(self, machine_id: int) -> None:
        pass

    async def destroy(self, machine_id: int) -> None:
        self._logs.pop(machine_id, None)

    async def authorize(self, machine_id: int, ssh_keys: tuple[str, ...]) -> None:
        pass

    async def log(self, machine_id: int) -> str:
        return self._logs.get(machine_id, "")

    async def telemetry(self, machine_id: int) -> MachineTelemetry:
        return MachineTelemetry(gpu_percent=0.0, gpu_celsius=35.0, gpu_memory_gb=0.0, memory_gb=0.1, disk_used_gb=0.1)

    async def take_traffic(self, machine_id: int) -> tuple[int, int]:
        return 0, 0

    async def processes(self, machine_id: int) -> list[int]:
        return []

    async def refuse_ssh(self, machine_id: int, *, door: str, refuse: bool) -> None:
        pass

    async def partition(self, machine_id: int, *, cut: bool) -> None:
        pass

    async def swap_host_key(self, machine_id: int) -> None:
        pass

    async def fill_disk(self, machine_id: int) -> None:
        pass

    async def skew_clock(self, machine_id: int, seconds: float) -> None:
        pass
