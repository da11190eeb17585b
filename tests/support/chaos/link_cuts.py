"""A big file moved through a link that breaks at seeded places: closed, reset, or half open for ever."""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from stationmaster.errors import Unreachable
from stationmaster.files import sha256_of
from stationmaster.remote.host import FileHash, Host
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.servers.sshd import Sshd
from tests.support.servers.tcp_proxy import TcpProxy, tcp_proxy

#: What may be sent more than once for each cut, and beside the file itself.
PER_CUT_BYTES = 8 * 2**20
OVERHEAD_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    cuts: int
    bytes_passed: int


@asynccontextmanager
async def broken_link(sshd: Sshd, folder: Path, *, way: str = "auto") -> AsyncIterator[tuple[Host, TcpProxy]]:
    """A job's folder behind the proxy, with trackside in place; a dead line is noticed within seconds."""
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port, keepalive_seconds=0.5, keepalive_count=3, way=way))
        host = Host(remote, root=str(folder / "job"), python=sys.executable)
        try:
            await host.install(build_pyz(folder / "pyz"))
            yield host, proxy
        finally:
            await remote.close()


def known(file: Path) -> FileHash:
    """What an inventory tells of the file."""
    return FileHash(sha256=sha256_of(file), size=file.stat().st_size)


async def move_there_and_back(host: Host, proxy: TcpProxy, folder: Path, *, size: int, cuts: int, seed: int) -> None:
    """The file arrives equal on both ways, however often the link breaks, and little is sent twice."""
    chance = random.Random(seed)
    source, back = folder / "source.bin", folder / "back" / "source.bin"
    with source.open("wb") as file:
        for offset in range(0, size, 2**20):
            file.write(chance.randbytes(min(2**20, size - offset)))
    sha256 = sha256_of(source)
    there = await _moved(lambda: push_verified(host, source, "in/source.bin", sha256), proxy, size, cuts, chance)
    assert sha256_of(Path(host.path("in/source.bin"))) == sha256
    _require_few_bytes_twice(there, size, cuts)
    again = await _moved(lambda: pull_verified(host, "in/source.bin", back, known(source)), proxy, size, cuts, chance)
    assert sha256_of(back) == sha256
    _require_few_bytes_twice(again, size, cuts)
    for left in (back.parent, Path(host.path("in"))):
        assert [path.name for path in left.iterdir()] == ["source.bin"]


async def _moved(
    move: Callable[[], Awaitable[object]], proxy: TcpProxy, size: int, cuts: int, chance: random.Random
) -> Moved:
    began, seen = proxy.bytes_passed, 0
    while True:
        if seen < cuts:
            _plan_cut(proxy, int(chance.uniform(0.4, 0.95) * size / (cuts + 1)), chance)
        try:
            await move()
        except Unreachable:
            seen += 1
            continue
        return Moved(cuts=seen, bytes_passed=proxy.bytes_passed - began)


def _plan_cut(proxy: TcpProxy, after_bytes: int, chance: random.Random) -> None:
    place = proxy.bytes_passed + after_bytes
    proxy.cut_after_bytes = proxy.reset_after_bytes = proxy.forsake_after_bytes = None
    match chance.choice(("closed", "reset", "half open")):
        case "closed":
            proxy.cut_after_bytes = place
        case "reset":
            proxy.reset_after_bytes = place
        case _:
            proxy.forsake_after_bytes = place


def _require_few_bytes_twice(moved: Moved, size: int, cuts: int) -> None:
    assert moved.cuts == cuts
    most = size * (1 + OVERHEAD_SHARE) + cuts * PER_CUT_BYTES
    print(f"{moved.cuts} cuts: {moved.bytes_passed:,} bytes for {size:,}; at most {most:,.0f}")
    assert moved.bytes_passed <= most
