"""A machine that is halted stays shut, whatever fault strikes it at that moment."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stationmaster.simulator.instances import Address
from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.process import ProcessMachines
from tests.support.asynchronous_tests import asynchronous

SPEC = MachineSpec(
    id=7,
    marker="halted-doors",
    environment=(),
    onstart=None,
    ssh_keys=(),
    api_key="key",
    disk_gb=10.0,
    gpu_name="RTX 4090",
    gpu_count=1,
    gpu_memory_mb=24_000,
    driver_version="550.54",
    cuda=12.4,
)


@asynccontextmanager
async def booted(folder: Path) -> AsyncIterator[tuple[ProcessMachines, Address]]:
    machines = ProcessMachines(folder, path=os.environ["PATH"])
    await machines.open(api_port=9, fresh=True)
    try:
        yield machines, await machines.boot(SPEC)
    finally:
        await machines.close(keep=False)


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except ConnectionRefusedError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


@pytest.mark.parametrize("order", ["halted before", "halted meanwhile"])
@asynchronous
async def test_a_host_key_that_changes_opens_no_door_of_a_halted_machine(tmp_path: Path, order: str) -> None:
    async with booted(tmp_path) as (machines, address):
        assert await answers(address.direct_port)
        if order == "halted before":
            await machines.halt(SPEC.id)
            await machines.swap_host_key(SPEC.id)
        else:
            await asyncio.gather(machines.swap_host_key(SPEC.id), machines.halt(SPEC.id))
        assert not await answers(address.direct_port)
        assert not await answers(address.proxy_port)
