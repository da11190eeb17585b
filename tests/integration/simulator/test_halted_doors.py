"""A machine that is halted stays shut, whatever fault strikes it at that moment."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stationmaster.simulator.instances import Address
from stationmaster.simulator.machines.base import MachineSpec
from stationmaster.simulator.machines.port_forward import PortForward
from stationmaster.simulator.machines.process import ProcessMachines
from tests.support.asynchronous_tests import asynchronous

PATIENCE_SECONDS = 150.0
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


@asynchronous
async def test_who_comes_while_a_door_is_shut_is_cut_and_not_forgotten() -> None:
    """A connection that nobody holds would stay open, and be blamed on whatever runs when it is found."""
    passed_on = asyncio.Event()
    async with await asyncio.start_server(lambda *_: passed_on.set(), "127.0.0.1", 0) as behind:
        door = PortForward("127.0.0.1", behind.sockets[0].getsockname()[:2])
        port = await door.open()
        with socket.create_connection(("127.0.0.1", port)) as comer:
            for _ in range(2):  # the loop sees it, and accepts it
                await asyncio.sleep(0)
            await door.close()
            comer.settimeout(PATIENCE_SECONDS)
            with contextlib.suppress(ConnectionResetError):
                assert await asyncio.to_thread(comer.recv, 1) == b""
        gc.collect()  # tells of sockets that nobody closed
        assert not passed_on.is_set()
