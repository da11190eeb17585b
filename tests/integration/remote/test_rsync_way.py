"""Big files by rsync: when it is taken, when not, and to whom it never goes. With a real sshd and a real rsync."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest

from stationmaster.errors import TransferFailed, Unreachable
from stationmaster.files import sha256_of
from stationmaster.remote.base import Span
from stationmaster.remote.rsync import Rsync
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.ssh_client import ssh_client
from stationmaster.remote.ssh_connection import SshTarget
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.asynchronous_tests import asynchronous, names_in, until
from tests.support.capabilities import require
from tests.support.chaos.link_cuts import broken_link, known
from tests.support.killing import kill
from tests.support.servers.sshd import Sshd
from tests.support.servers.tcp_proxy import TcpProxy, tcp_proxy

MIB = 2**20
NO_RSYNC = (("PATH", "/nonexistent"),)


@pytest.fixture(autouse=True)
def _rsync_is_there() -> None:
    require("rsync")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a file with 'quotes' and $(spaces)"
    path.write_bytes(os.urandom(5 * MIB))
    return path


async def sent(sshd: Sshd, source: Path, target: Path, **settings: object) -> tuple[TcpProxy, list[tuple[int, int]]]:
    """The file pushed through a proxy that counts connections, and the progress that was told."""
    told: list[tuple[int, int]] = []
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port, **settings))
        size = source.stat().st_size
        try:
            await remote.push_spans(
                source, str(target), [Span(0, size)], size=size, progress=lambda *moved: told.append(moved)
            )
        finally:
            await remote.close()
    return proxy, told


@asynchronous
async def test_a_file_that_is_worth_it_goes_by_rsync(sshd: Sshd, tmp_path: Path, source: Path) -> None:
    proxy, told = await sent(sshd, source, tmp_path / "far" / "it's $(here)", rsync_from_bytes=MIB)
    assert (tmp_path / "far" / "it's $(here)").read_bytes() == source.read_bytes()
    assert proxy.connections == 3  # ours, the question whether rsync is there, and rsync's own
    assert told[-1] == (5 * MIB, 5 * MIB)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(("way", "from_bytes"), [("auto", 64 * MIB), ("sftp", MIB)])
@asynchronous
async def test_a_file_that_is_not_goes_over_our_own_connection(
    sshd: Sshd, tmp_path: Path, source: Path, way: str, from_bytes: int
) -> None:
    proxy, _ = await sent(sshd, source, tmp_path / "far", way=way, rsync_from_bytes=from_bytes)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()
    assert proxy.connections == 1


@asynchronous
async def test_a_machine_without_rsync_gets_the_file_all_the_same(sshd: Sshd, tmp_path: Path, source: Path) -> None:
    await sent(sshd, source, tmp_path / "far", rsync_from_bytes=MIB, environment=NO_RSYNC)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


@asynchronous
async def test_where_only_our_own_connection_gets_in_the_file_goes_over_it(
    sshd: Sshd, tmp_path: Path, source: Path
) -> None:
    key = tmp_path / "key that everybody may read"  # which the system's ssh refuses to use
    key.write_bytes(sshd.client_key.read_bytes())
    key.chmod(0o644)
    proxy, _ = await sent(sshd, source, tmp_path / "far", rsync_from_bytes=MIB, key_path=key)
    assert (tmp_path / "far").read_bytes() == source.read_bytes()
    assert proxy.connections == 2  # ours, and the one that was not let in


@asynchronous
async def test_rsync_that_was_demanded_and_is_missing_is_a_clear_failure(
    sshd: Sshd, tmp_path: Path, source: Path
) -> None:
    with pytest.raises(TransferFailed, match="rsync cannot be used with") as refused:
        await sent(sshd, source, tmp_path / "far", way="rsync", environment=NO_RSYNC)
    assert "transfer.way" in str(refused.value.hint)
    assert not (tmp_path / "far").exists()


@asynchronous
async def test_a_machine_that_the_persons_configuration_names_is_reached_by_rsync_too(
    sshd: Sshd, tmp_path: Path, source: Path
) -> None:
    known_hosts, config = tmp_path / "known_hosts", tmp_path / "config"
    known_hosts.write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
    config.write_text(
        f"Host box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  IdentityFile {sshd.client_key}\n"
        f"  UserKnownHostsFile {known_hosts}\n"
    )
    remote = SshRemote(SshTarget(host="box", use_config=True, config_path=config, way="rsync"))
    await remote.push_spans(source, str(tmp_path / "far"), [Span(0, 5 * MIB)], size=5 * MIB)
    await remote.close()
    assert (tmp_path / "far").read_bytes() == source.read_bytes()


@asynchronous
async def test_nothing_is_sent_to_a_machine_with_another_host_key(sshd: Sshd, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "other")], check=True)
    settings = sshd.settings()
    for key, answer in ((sshd.host_key, True), ((tmp_path / "other.pub").read_text(), None)):
        with ssh_client(settings, key) as client:
            assert client is not None
            rsync = Rsync(program="rsync", client=client, environment=(), idle_seconds=30)
            assert await rsync.answers() is answer


@asynchronous
async def test_holes_are_filled_and_the_end_is_appended(sshd: Sshd, tmp_path: Path, source: Path) -> None:
    """What is damaged in the middle goes by SFTP, what lacks at the end by rsync; the rest is not sent."""
    there, back = tmp_path / "far" / "there", tmp_path / "back"
    data = source.read_bytes()
    for damaged in (there, back):
        damaged.parent.mkdir(exist_ok=True)
        damaged.write_bytes(data[:MIB] + bytes(MIB) + data[2 * MIB : 3 * MIB] + b"rubbish")
    spans = [Span(MIB, MIB), Span(3 * MIB, 2 * MIB)]
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port, way="rsync"))
        await remote.push_spans(source, str(there), spans, size=5 * MIB)
        await remote.pull_spans(str(source), back, spans, size=5 * MIB)
        await remote.close()
    assert there.read_bytes() == data == back.read_bytes()
    assert proxy.bytes_passed < 7 * MIB


@asynchronous
async def test_a_receiver_that_a_dead_line_left_behind_is_ended_before_the_transfer_goes_on(
    sshd: Sshd, tmp_path: Path
) -> None:
    source = tmp_path / "source"
    source.write_bytes(os.urandom(24 * MIB))
    sha256 = sha256_of(source)
    async with broken_link(sshd, tmp_path, way="rsync") as (host, proxy):
        proxy.forsake_after_bytes = proxy.bytes_passed + 12 * MIB
        with pytest.raises(Unreachable):
            await push_verified(host, source, "there", sha256)
        (part,) = [file for file in Path(host.root).iterdir() if file.suffix == ".part"]
        (old,) = await asyncio.to_thread(writers_of, part)
        before = proxy.bytes_passed
        await push_verified(host, source, "there", sha256)
        assert proxy.bytes_passed - before < 18 * MIB
        await until(lambda: not Path(f"/proc/{old}/fd").exists() or not writers_of(part), what="the old one's end")
    assert sha256_of(tmp_path / "job" / "there") == sha256


@asynchronous
async def test_a_killed_rsync_loses_nothing_that_came(sshd: Sshd, tmp_path: Path) -> None:
    """Not even by kill -9: it appends in place."""
    far, target = tmp_path / "far", tmp_path / "home" / "file"
    far.write_bytes(os.urandom(24 * MIB))
    sha256 = sha256_of(far)
    part = target.with_name(f".{sha256[:16]}.fetching")
    async with broken_link(sshd, tmp_path, way="rsync") as (host, proxy):
        proxy.bytes_per_second = 16 * MIB
        fetching = asyncio.create_task(pull_verified(host, str(far), target, known(far)))
        await until(lambda: part.exists() and part.stat().st_size > 8 * MIB, what="some megabytes", seconds=45)
        for pid in writers_of(part):
            kill(pid)
        with pytest.raises(Unreachable):
            await fetching
        proxy.bytes_per_second, before = None, proxy.bytes_passed
        await pull_verified(host, str(far), target, known(far))
        assert proxy.bytes_passed - before < 18 * MIB
    assert sha256_of(target) == sha256


def writers_of(path: Path) -> list[int]:
    """The rsync processes that have the file open."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "comm").read_text().strip() == "rsync" and any(
                link.readlink() == path for link in (folder / "fd").iterdir()
            ):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


@asynchronous
async def test_a_cancelled_transfer_leaves_no_rsync_behind(sshd: Sshd, tmp_path: Path, source: Path) -> None:
    async with tcp_proxy(sshd.port) as proxy:
        remote = SshRemote(sshd.settings(port=proxy.port, way="rsync"))
        proxy.bytes_per_second = MIB
        target = tmp_path / "home" / "file"
        fetching = asyncio.create_task(
            remote.pull_spans(str(source), target, [Span(0, 5 * MIB)], size=5 * MIB),
        )
        await until(lambda: bool(writers_of(target)), what="rsync at work", seconds=45)
        fetching.cancel()
        await asyncio.wait([fetching])
        assert writers_of(target) == []
        proxy.bytes_per_second = None
        await remote.close()
    assert names_in(target.parent) == ["file"]
