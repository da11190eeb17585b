"""Home, a real sshd, a real trackside: what happens on the machine does not depend on the connection."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from stationmaster.errors import Unreachable
from stationmaster.remote.host import Host
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.status import Status
from tests.support.asynchronous_tests import asynchronous
from tests.support.servers.sshd import Sshd
from tests.support.servers.tcp_proxy import tcp_proxy

PLAN = {
    "format": 1,
    "job": "j",
    "attempt": 1,
    "steps": [
        {
            "name": "train",
            "argv": ["/bin/sh", "-c", "echo begun; while [ ! -e ../sign ]; do sleep 0.02; done; echo $TOKEN | wc -c"],
            "training": True,
            "secrets": ["TOKEN"],
        }
    ],
    "outputs": [],
}


async def until_finished(host: Host) -> Status:
    while True:
        status = await host.status()
        if status.finished is not None:
            return status
        await asyncio.sleep(0.1)


@asynchronous
async def test_a_training_outlives_the_connection_and_is_found_again(sshd: Sshd, tmp_path: Path) -> None:
    root = tmp_path / "it's a folder"
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port))
        host = Host(remote, root=str(root), python=sys.executable)
        await host.install(build_pyz(tmp_path / "pyz"))
        await host.put_plan(PLAN)
        assert (await host.start()).needs_secrets == ("TOKEN",)
        await host.start({"TOKEN": "abcde"})
        async with aclosing(host.follow(interval_seconds=0.02)) as statuses:
            async for status in statuses:
                if any(b"begun" in piece.data for piece in status.log):
                    break
            proxy.cut()
            with pytest.raises(Unreachable):
                await drain(statuses)
        (root / "sign").touch()
        status = await until_finished(host)
        assert (status.finished and status.finished.result, status.steps[0].try_number) == ("done", 1)
        assert (await host.logs()).split() == ["begun", "6"]
        await remote.close()


async def drain(statuses: AsyncIterator[Status]) -> None:
    async for _ in statuses:
        pass
