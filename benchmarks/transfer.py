"""Push and pull over SSH, verified on the far side, against rsync and scp with `sha256sum` in the same run.

Prints one JSON line for each figure. Ours counts from the call to the verified file, so the time of rsync
and scp includes a hash of the file on the far side, which they do not compute themselves. Only the ratios to rsync have
a budget.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _report import print_figure, report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from stationmaster.datasets.pack import pack
from stationmaster.files import sha256_of
from stationmaster.remote.host import FileHash, Host
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.transfer import pull_verified, push_verified
from tests.support.servers.sshd import Sshd, running_sshd

RSYNC_RATIO = 0.9
SMALL_FILES_RATIO = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--captions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--directory", type=Path, default=None)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as temporary:
        folder = Path(temporary)
        (folder / "sshd").mkdir()
        with running_sshd(folder / "sshd") as sshd:
            asyncio.run(_measure(folder, sshd, arguments))
    return 0


async def _measure(folder: Path, sshd: Sshd, arguments: argparse.Namespace) -> None:
    source = folder / "big.bin"
    source.write_bytes(os.urandom(arguments.megabytes * 1_000_000))
    sha256 = sha256_of(source)
    ways: dict[str, Host] = {}
    for way in ("auto", "sftp"):
        remote = SshRemote(sshd.settings(way=way))
        ways[way] = Host(remote, root=str(folder / "job"), python=sys.executable)
        await ways[way].install(build_pyz(folder / "pyz"))
    best = {name: float("inf") for name in _NAMES}
    for _ in range(arguments.rounds):
        for name, seconds in (await _round(folder, sshd, ways, source, sha256)).items():
            best[name] = min(best[name], seconds)
    for way in ("push", "pull"):
        report(
            f"transfer.{way}_against_rsync", best[f"rsync {way}"] / best[f"auto {way}"], "ratio", at_least=RSYNC_RATIO
        )
        print_figure(f"transfer.{way}_by_sftp_against_rsync", best[f"rsync {way}"] / best[f"sftp {way}"], "ratio")
        print_figure(f"transfer.{way}", arguments.megabytes / best[f"auto {way}"], "MB/s")
    print_figure("transfer.push_against_scp", best["scp push"] / best["auto push"], "ratio")
    await _many_small_files(folder, sshd, ways["auto"], arguments)
    for host in ways.values():
        await host.remote.close()


def _size(source: Path) -> int:
    return source.stat().st_size


_NAMES = ("auto push", "auto pull", "sftp push", "sftp pull", "rsync push", "rsync pull", "scp push")


async def _round(folder: Path, sshd: Sshd, ways: dict[str, Host], source: Path, sha256: str) -> dict[str, float]:
    """Seconds of each method; they take turns, so that a busy moment does not affect only one."""
    far, back = folder / "job" / "far.bin", folder / "back.bin"
    seconds: dict[str, float] = {}
    known = FileHash(sha256=sha256, size=_size(source))
    for way, host in ways.items():
        far.unlink(missing_ok=True)
        back.unlink(missing_ok=True)
        began = time.perf_counter()
        await push_verified(host, source, "far.bin", sha256)
        pushed = time.perf_counter()
        await pull_verified(host, "far.bin", back, known)
        seconds |= {f"{way} push": pushed - began, f"{way} pull": time.perf_counter() - pushed}
    rivals = {
        "rsync push": lambda: _rsync_there(sshd, source, folder / "rsynced.bin"),
        "rsync pull": lambda: _rsync_back(sshd, far, folder / "rsynced.bin"),
        "scp push": lambda: _scp(sshd, source, folder / "copied.bin"),
    }
    return seconds | {name: await asyncio.to_thread(_timed, rival) for name, rival in rivals.items()}


async def _many_small_files(folder: Path, sshd: Sshd, host: Host, arguments: argparse.Namespace) -> None:
    """A set of captions against one file of the same size: the transfer alone, and with packing and unpacking."""
    captions, single = folder / "captions", folder / "single"
    for each in (captions, single):
        each.mkdir()
    for number in range(arguments.captions):
        (captions / f"image_{number:05d}.txt").write_text(f"a caption with the number {number}")
    size = (await asyncio.to_thread(pack, captions, folder / "captions.tar")).size
    (single / "one.bin").write_bytes(os.urandom(size))
    best = {(each.name, what): float("inf") for each in (captions, single) for what in ("push", "all")}
    for number in range(arguments.rounds):
        for each in (captions, single):
            for what, seconds in zip(("push", "all"), await _carried(host, each, number), strict=True):
                best[each.name, what] = min(best[each.name, what], seconds)
    ratio = best["captions", "push"] / best["single", "push"]
    report("transfer.captions_against_one_file", ratio, "ratio", at_most=SMALL_FILES_RATIO)
    whole = best["captions", "all"] / best["single", "all"]
    print_figure("transfer.captions_packed_sent_unpacked_against_one_file", whole, "ratio")
    loose = await asyncio.to_thread(_timed, lambda: _rsync(sshd, f"{captions}/", f"127.0.0.1:{folder}/loose/", "-r"))
    print_figure("transfer.captions_packed_sent_unpacked_against_rsync", loose / best["captions", "all"], "ratio")


async def _carried(host: Host, folder: Path, number: int) -> tuple[float, float]:
    """Seconds of the transfer, and of everything until the files are on the machine."""
    began, name = time.perf_counter(), f"{folder.name}-{number}"
    packed = await asyncio.to_thread(pack, folder, folder.with_suffix(".tar"))
    ready = time.perf_counter()
    await push_verified(host, packed.path, f"{name}.tar", packed.sha256)
    sent = time.perf_counter()
    await host.unpack(f"{name}.tar", name, packed.sha256)
    return sent - ready, time.perf_counter() - began


def _timed(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _rsync_there(sshd: Sshd, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    _rsync(sshd, str(source), f"127.0.0.1:{target}")
    _far_hash(sshd, target)


def _rsync_back(sshd: Sshd, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    _rsync(sshd, f"127.0.0.1:{source}", str(target))
    subprocess.run(shlex.split(_hash_command(target)), check=True, stdout=subprocess.DEVNULL)


def _rsync(sshd: Sshd, source: str, target: str, *options: str) -> None:
    shell = shlex.join(["ssh", *_ssh_options(sshd), "-p", str(sshd.port)])
    subprocess.run(["rsync", "-W", *options, "-e", shell, source, target], check=True)


def _scp(sshd: Sshd, source: Path, target: Path) -> None:
    subprocess.run(
        ["scp", "-q", *_ssh_options(sshd), "-P", str(sshd.port), str(source), f"127.0.0.1:{target}"], check=True
    )
    _far_hash(sshd, target)


def _far_hash(sshd: Sshd, target: Path) -> None:
    subprocess.run(
        ["ssh", *_ssh_options(sshd), "-p", str(sshd.port), "127.0.0.1", _hash_command(target)],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _hash_command(target: Path) -> str:
    """openssl is the faster competitor if sha256sum does not use the processor's SHA unit."""
    hasher = "openssl dgst -sha256" if shutil.which("openssl") else "sha256sum"
    return f"{hasher} {shlex.quote(str(target))}"


def _ssh_options(sshd: Sshd) -> list[str]:
    """The same cipher as ours, so that the methods are compared and not the ciphers."""
    return [
        *("-F", "none", "-i", str(sshd.client_key), "-o", "StrictHostKeyChecking=no"),
        *("-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-c", "aes128-gcm@openssh.com"),
    ]


if __name__ == "__main__":
    sys.exit(main())
