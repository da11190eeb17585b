"""The back end `namespaces`: machines with their own address, file system and pid namespace. Linux with root only."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from stationmaster.errors import ConfigInvalid
from stationmaster.simulator.instances import Address
from stationmaster.simulator.json_rows import MachineTelemetry
from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.namespace_machine import SYSTEM_PATH, NamespaceMachine
from stationmaster.simulator.machines.network import Network

_PROGRAMS = ("ip", "unshare", "nsenter", "mount", "umount", "sshd", "setsid", "bash")


class NamespaceMachines:
    """Needs root on Linux. A partition really cuts the network: neither SSH nor the API is reachable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._network = Network()
        self._machines: dict[int, NamespaceMachine] = {}
        self._api_port = 0

    @property
    def api_hosts(self) -> tuple[str, ...]:
        return (self._network.host,)

    async def open(self, *, api_port: int, fresh: bool) -> None:
        check_system(platform=sys.platform, user_id=os.geteuid())
        self._api_port = api_port
        self._folder.mkdir(parents=True, exist_ok=True)
        left = self._folder / "network"
        if left.exists():
            self._network.reopen(int(left.read_text()))
            if not fresh:
                return
            for folder in self._folder.glob("*/slot"):
                await NamespaceMachine(folder.parent, self._network).destroy()
            await self._network.close()
        await self._network.open()
        left.write_text(str(self._network.number))

    async def close(self, *, keep: bool) -> None:
        for machine in self._machines.values():
            await (machine.shut() if keep else machine.destroy())
        if not keep:
            await self._network.close()
            (self._folder / "network").unlink(missing_ok=True)

    async def boot(self, spec: MachineSpec) -> Address:
        taken = {machine.slot for machine in self._machines.values()}
        machine = self._machines.get(spec.id) or NamespaceMachine(self._folder / str(spec.id), self._network)
        self._machines[spec.id] = machine
        machine.take_slot(taken)
        api_url = f"http://{self._network.host}:{self._api_port}"
        await machine.boot(spec, api_url=api_url)
        return await machine.open_ports(spec.address)

    async def adopt(self, spec: MachineSpec) -> Address | None:
        machine = NamespaceMachine(self._folder / str(spec.id), self._network)
        if not machine.is_up:
            return None
        self._machines[spec.id] = machine
        return await machine.open_ports(spec.address)

    async def halt(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            await machine.halt()

    async def destroy(self, machine_id: int) -> None:
        if machine := self._machines.pop(machine_id, None):
            await machine.destroy()

    async def authorize(self, machine_id: int, ssh_keys: tuple[str, ...]) -> None:
        self._machines[machine_id].authorize(ssh_keys)

    async def log(self, machine_id: int) -> str:
        machine = self._machines.get(machine_id)
        return machine.log() if machine is not None else ""

    async def telemetry(self, machine_id: int) -> MachineTelemetry:
        machine = self._machines.get(machine_id)
        return await machine.telemetry() if machine is not None and machine.is_up else MachineTelemetry()

    async def take_traffic(self, machine_id: int) -> tuple[int, int]:
        machine = self._machines.get(machine_id)
        return machine.take_traffic() if machine is not None else (0, 0)

    async def processes(self, machine_id: int) -> list[int]:
        machine = self._machines.get(machine_id)
        return machine.processes() if machine is not None else []

    async def refuse_ssh(self, machine_id: int, *, door: str, refuse: bool) -> None:
        if machine := self._machines.get(machine_id):
            await machine.refuse_ssh(door=door, refuse=refuse)

    async def partition(self, machine_id: int, *, cut: bool) -> None:
        if machine := self._machines.get(machine_id):
            await self._network.pull(machine.slot, out=cut)

    async def swap_host_key(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            machine.swap_host_key()

    async def fill_disk(self, machine_id: int) -> None:
        if machine := self._machines.get(machine_id):
            await machine.fill_disk()

    async def skew_clock(self, machine_id: int, seconds: float) -> None:
        if machine := self._machines.get(machine_id):
            machine.skew_clock(seconds)


def check_system(*, platform: str, user_id: int, path: str = SYSTEM_PATH) -> None:
    """Raise ConfigInvalid, with the reason, if this back end cannot be used."""
    missing = [program for program in _PROGRAMS if shutil.which(program, path=path) is None]
    if platform != "linux" or user_id != 0 or missing:
        reason = "it needs root on Linux" if platform != "linux" or user_id else f"{', '.join(missing)} not found"
        raise ConfigInvalid(f"the namespaces back end cannot be used: {reason}", hint="use --backend process")
