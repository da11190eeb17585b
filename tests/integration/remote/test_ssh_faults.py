"""What a Remote over SSH says when the connection misbehaves, with a real sshd behind a proxy that does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stationmaster.errors import TransferFailed, Unreachable
from stationmaster.remote.ssh import SshRemote
from tests.support.asynchronous_tests import asynchronous, names_in, until
from tests.support.servers.ports import own_port
from tests.support.servers.sshd import Sshd
from tests.support.servers.tcp_proxy import TcpProxy, tcp_proxy


@asynccontextmanager
async def through_a_proxy(sshd: Sshd, **settings: object) -> AsyncIterator[tuple[SshRemote, TcpProxy]]:
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port, **settings))
        try:
            yield remote, proxy
        finally:
            await remote.close()


def wait_for_file(path: Path) -> list[str]:
    """A command that says where it is and goes on until `path` is there."""
    return ["sh", "-c", 'touch "$1.begun"; while [ ! -e "$1" ]; do sleep 0.02; done; touch "$1.ended"', "sh", str(path)]


@asynchronous
async def test_one_connection_serves_many_calls(sshd: Sshd) -> None:
    async with through_a_proxy(sshd) as (remote, proxy):
        await asyncio.gather(*(remote.run(["true"], timeout=150) for _ in range(5)))
        await remote.stat("/")
        assert proxy.connections == 1


@asynchronous
async def test_more_is_asked_at_once_than_a_server_takes_by_default(sshd: Sshd, tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.txt" for number in range(30)]
    for file in files:
        file.write_text(file.name)
    async with through_a_proxy(sshd) as (remote, proxy):
        await asyncio.gather(
            *(remote.run(["sleep", "0.05"], timeout=150) for _ in files),
            *(remote.pull(str(file), tmp_path / "home" / file.name, size=len(file.name)) for file in files),
        )
        for file in files:  # one after the other, each in a channel of its own
            await remote.pull(str(file), tmp_path / "again" / file.name, size=len(file.name))
        assert proxy.connections == 1
    assert [(tmp_path / "home" / file.name).read_text() for file in files] == [file.name for file in files]


@asynchronous
async def test_a_command_whose_connection_is_cut_has_an_unknown_end(sshd: Sshd, tmp_path: Path) -> None:
    go = tmp_path / "go"
    async with through_a_proxy(sshd) as (remote, proxy):
        running = asyncio.create_task(remote.run(wait_for_file(go), timeout=150))
        await until((tmp_path / "go.begun").exists, what="the command's begin")
        proxy.cut()
        assert (await running).exit_status is None
        go.touch()
        await until((tmp_path / "go.ended").exists, what="the command's end: it outlives its connection")


@asynchronous
async def test_a_command_whose_session_process_is_killed_has_an_unknown_end(sshd: Sshd, tmp_path: Path) -> None:
    go = tmp_path / "go"
    remote = SshRemote(sshd.settings())
    running = asyncio.create_task(remote.run(wait_for_file(go), timeout=150))
    await until((tmp_path / "go.begun").exists, what="the command's begin")
    sshd.kill_sessions()
    assert (await running).exit_status is None
    go.touch()
    assert (await remote.run(["true"], timeout=150)).exit_status == 0
    await remote.close()


@asynchronous
async def test_the_call_after_a_cut_connects_again(sshd: Sshd) -> None:
    async with through_a_proxy(sshd) as (remote, proxy):
        assert (await remote.run(["true"], timeout=150)).exit_status == 0
        for connections in (2, 3, 4):
            proxy.cut()
            await until_it_answers(remote)
            assert proxy.connections == connections
            assert await remote.stat("/") is not None


async def until_it_answers(remote: SshRemote) -> None:
    """The loss is noticed at once or at the first use: at most that one call is lost."""
    try:
        done = await remote.run(["true"], timeout=150)
    except Unreachable:
        done = await remote.run(["true"], timeout=150)
    assert done.exit_status == 0


@asynchronous
async def test_a_stream_whose_connection_is_cut_raises_instead_of_ending(sshd: Sshd, tmp_path: Path) -> None:
    async with (
        through_a_proxy(sshd) as (remote, proxy),
        remote.stream(["sh", "-c", "echo begun; exec cat"], timeout_idle=20) as stream,
    ):
        chunks = aiter(stream)
        assert await anext(chunks) == b"begun\n"
        proxy.cut()
        with pytest.raises(Unreachable):
            await anext(chunks)
        assert stream.exit_status is None


@asynchronous
async def test_keepalive_notices_a_half_open_connection(sshd: Sshd) -> None:
    async with (
        through_a_proxy(sshd, keepalive_seconds=0.3, keepalive_count=2) as (remote, proxy),
        remote.stream(["sh", "-c", "echo begun; exec cat"]) as stream,
    ):
        chunks = aiter(stream)
        assert await anext(chunks) == b"begun\n"
        proxy.pause()
        with pytest.raises(Unreachable, match="keepalive"):
            await anext(chunks)


@asynchronous
async def test_a_half_open_connection_is_not_used_again_after_a_time_limit(sshd: Sshd) -> None:
    async with through_a_proxy(sshd) as (remote, proxy):
        assert (await remote.run(["true"], timeout=150)).exit_status == 0
        proxy.pause()
        with pytest.raises(Unreachable, match=r"did not answer within 0\.3 s"):
            await remote.run(["true"], timeout=0.3)
        proxy.resume()
        assert (await remote.run(["true"], timeout=150)).exit_status == 0
        assert proxy.connections == 2


@asynchronous
async def test_a_time_limit_of_one_call_leaves_the_others_alone(sshd: Sshd) -> None:
    remote = SshRemote(sshd.settings())
    async with remote.stream(["cat"]) as _, remote.stream(["sh", "-c", "sleep 0.6; echo late; exec cat"]) as stream:
        with pytest.raises(Unreachable):
            await remote.run(["sleep", "30"], timeout=0.3)
        assert await anext(aiter(stream)) == b"late\n"
    await remote.close()


@asynchronous
async def test_a_host_that_takes_connections_and_says_nothing_is_unknown(sshd: Sshd, tmp_path: Path) -> None:
    async with through_a_proxy(sshd) as (remote, proxy):
        proxy.pause()
        with pytest.raises(Unreachable, match="did not answer within"):
            await remote.run(["true"], timeout=0.3)
        with pytest.raises(Unreachable, match="did not answer within"):
            await remote.stat("/", timeout=0.3)
        with pytest.raises(Unreachable, match="did not answer within"):
            await remote.pull("/etc/hostname", tmp_path / "x", size=1, timeout_idle=0.3)
        with pytest.raises(Unreachable, match="did not answer within"):
            async with remote.stream(["true"], timeout_idle=0.3):
                pytest.fail("the stream was opened")
        with pytest.raises(Unreachable, match="did not answer within"):
            async with remote.forward(1, timeout=0.3):
                pytest.fail("the forward was opened")


@asynchronous
async def test_a_port_where_nothing_listens_is_unknown_not_gone(sshd: Sshd) -> None:
    remote = SshRemote(sshd.settings(port=own_port()))
    with pytest.raises(Unreachable, match="cannot be reached"):
        await remote.stat("/")
    with pytest.raises(Unreachable, match="cannot be reached"):
        await remote.run(["true"], timeout=150)


@asynchronous
async def test_a_pull_that_is_cut_leaves_nothing_behind(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "far").write_bytes(os.urandom(4_000_000))
    (tmp_path / "here").mkdir()
    async with through_a_proxy(sshd) as (remote, proxy):
        proxy.cut_after_bytes = 1_000_000
        with pytest.raises(Unreachable):
            await remote.pull(str(tmp_path / "far"), tmp_path / "here" / "file", size=4_000_000)
        assert names_in(tmp_path / "here") == []
        await remote.pull(str(tmp_path / "far"), tmp_path / "here" / "file", size=4_000_000)
    assert (tmp_path / "here" / "file").read_bytes() == (tmp_path / "far").read_bytes()


@asynchronous
async def test_a_push_that_is_cut_leaves_the_old_file_and_the_next_one_clears_its_rest(
    sshd: Sshd, tmp_path: Path
) -> None:
    far, here = tmp_path / "far", tmp_path / "here"
    far.mkdir()
    (far / "file").write_bytes(b"old")
    here.write_bytes(os.urandom(4_000_000))
    async with through_a_proxy(sshd) as (remote, proxy):
        proxy.cut_after_bytes = 1_000_000
        with pytest.raises(Unreachable):
            await remote.push(here, str(far / "file"))
        assert (far / "file").read_bytes() == b"old"
        await remote.push(here, str(far / "file"))
    assert names_in(far) == ["file"]
    assert (far / "file").read_bytes() == here.read_bytes()


@asynchronous
async def test_a_slow_transfer_that_moves_is_not_given_up(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "far").write_bytes(os.urandom(600_000))
    async with through_a_proxy(sshd) as (remote, proxy):
        await remote.stat("/")
        proxy.bytes_per_second = 300_000
        began = time.monotonic()
        await remote.pull(str(tmp_path / "far"), tmp_path / "near", size=600_000, timeout_idle=1.5)
        assert time.monotonic() - began > 1.5
    assert (tmp_path / "near").read_bytes() == (tmp_path / "far").read_bytes()


@asynchronous
async def test_a_transfer_that_stands_still_is_given_up(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "far").write_bytes(os.urandom(4_000_000))
    async with through_a_proxy(sshd) as (remote, proxy):
        await remote.stat("/")
        with pytest.raises(Unreachable, match="did not answer within 1 s"):
            await remote.pull(
                str(tmp_path / "far"),
                tmp_path / "near",
                size=4_000_000,
                timeout_idle=1,
                progress=lambda done, total: proxy.pause(),
            )
        assert names_in(tmp_path) == ["far"]


@asynchronous
async def test_a_full_disk_over_there_is_a_failed_transfer(sshd: Sshd, tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    remote = SshRemote(sshd.settings())
    with pytest.raises(TransferFailed):
        await remote.push(tmp_path / "here", "/proc/no-such-folder/file")
    await remote.close()
