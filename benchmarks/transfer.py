"""Push and pull over SSH, verified on the far side, against rsync and scp with `sha256sum` in the same run.

Prints one JSON line for each figure. Ours counts from the call to the verified file, so the rivals' time includes a
hash of the file where it arrived, which they do not make themselves. Only the ratios to rsync have a budget.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from _report import report

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from sshd_fixture import Sshd, running_sshd
from stationmaster.datasets.pack import pack
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.remote.host import Host
from stationmaster.remote.pyz import build_pyz
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.transfer import pull_verified, push_verified, sha256_of

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
    remote = SshRemote(sshd.settings())
    host = Host(remote, root=str(folder / "job"), python=sys.executable)
    await host.install(build_pyz(folder / "pyz"))
    far, back = folder / "job" / "far.bin", folder / "back.bin"
    pushes, pulls, rsyncs, rsync_pulls, copies = [], [], [], [], []
    for _ in range(arguments.rounds):
        far.unlink(missing_ok=True)
        back.unlink(missing_ok=True)
        began = time.perf_counter()
        await push_verified(host, source, "far.bin", sha256)
        pushes.append(time.perf_counter() - began)
        began = time.perf_counter()
        await pull_verified(host, "far.bin", back, sha256)
        pulls.append(time.perf_counter() - began)
        rsyncs.append(await asyncio.to_thread(_timed, lambda: _rsync_there(sshd, source, folder / "rsynced.bin")))
        rsync_pulls.append(await asyncio.to_thread(_timed, lambda: _rsync_back(sshd, far, folder / "rsynced.bin")))
        copies.append(await asyncio.to_thread(_timed, lambda: _scp(sshd, source, folder / "copied.bin")))
    report("transfer.push_against_rsync", min(rsyncs) / min(pushes), "ratio", at_least=RSYNC_RATIO)
    report("transfer.pull_against_rsync", min(rsync_pulls) / min(pulls), "ratio", at_least=RSYNC_RATIO)
    _tell("transfer.push_against_scp", min(copies) / min(pushes), "ratio")
    _tell("transfer.push", arguments.megabytes / min(pushes), "MB/s")
    _tell("transfer.pull", arguments.megabytes / min(pulls), "MB/s")
    await _many_small_files(folder, host, arguments)
    await remote.close()


async def _many_small_files(folder: Path, host: Host, arguments: argparse.Namespace) -> None:
    """A set of captions travels as one archive; the rival is one file of the same size, without packing."""
    captions = folder / "captions"
    write_sample_set(captions, images=10)
    for number in range(arguments.captions):
        (captions / f"more-{number}.txt").write_text(f"a caption with the number {number}")
    archive, one = folder / "set.tar", folder / "one.bin"
    await asyncio.to_thread(pack, captions, archive)
    one.write_bytes(os.urandom(archive.stat().st_size))
    seconds = []
    for source in (archive, one):
        sha256, times = sha256_of(source), []
        for number in range(arguments.rounds):
            began = time.perf_counter()
            await push_verified(host, source, f"{source.name}-{number}", sha256)
            times.append(time.perf_counter() - began)
        seconds.append(min(times))
    report("transfer.small_files_against_one", seconds[0] / seconds[1], "ratio", at_most=SMALL_FILES_RATIO)


def _timed(action: Callable[[], None]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _tell(name: str, value: float, unit: str) -> None:
    """A figure without a budget."""
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit}), flush=True)


def _rsync_there(sshd: Sshd, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    _rsync(sshd, str(source), f"127.0.0.1:{target}")
    _far_hash(sshd, target)


def _rsync_back(sshd: Sshd, source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    _rsync(sshd, f"127.0.0.1:{source}", str(target))
    subprocess.run(shlex.split(_hash_command(target)), check=True, stdout=subprocess.DEVNULL)


def _rsync(sshd: Sshd, source: str, target: str) -> None:
    shell = shlex.join(["ssh", *_ssh_options(sshd), "-p", str(sshd.port)])
    subprocess.run(["rsync", "-W", "-e", shell, source, target], check=True)


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
    """openssl is the sterner rival where sha256sum does not use the processor's SHA unit."""
    hasher = "openssl dgst -sha256" if shutil.which("openssl") else "sha256sum"
    return f"{hasher} {shlex.quote(str(target))}"


def _ssh_options(sshd: Sshd) -> list[str]:
    """The same cipher as ours, so that the ways are compared and not the ciphers."""
    return [
        *("-F", "none", "-i", str(sshd.client_key), "-o", "StrictHostKeyChecking=no"),
        *("-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-c", "aes128-gcm@openssh.com"),
    ]


if __name__ == "__main__":
    sys.exit(main())
