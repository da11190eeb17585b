"""Packing and hashing against `tar | sha256sum` and `sha256sum` in the same run; one JSON line for each figure.

Ours does more: it also hashes every file, writes the archive and waits until it is on the disk.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from _report import print_figure, report
from stationmaster.datasets.pack import pack
from stationmaster.files import sha256_of

TAR_RATIO = 0.8


def main() -> int:
    arguments = _arguments()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as temporary:
        folder = Path(temporary)
        _race_packing(folder / "images", "pack.images", arguments, megabytes=arguments.megabytes, captions=1000)
        _race_packing(folder / "captions", "pack.captions", arguments, megabytes=0, captions=arguments.captions)
        _race_hashing(folder / "images.tar", arguments)
    return 0


def _race_packing(folder: Path, name: str, arguments: argparse.Namespace, *, megabytes: int, captions: int) -> None:
    total, archive = write_dataset(folder, megabytes=megabytes, captions=captions), folder.with_suffix(".tar")
    pack(folder, archive)  # warms the page cache for all of them
    racers: list[Callable[[], object]] = [lambda: pack(folder, archive), lambda: _pipe(folder, ["sha256sum"])]
    if shutil.which("openssl"):
        racers.append(lambda: _pipe(folder, ["openssl", "dgst", "-sha256"]))
    ours, coreutils, *sterner = _race(arguments.rounds, racers)
    report(f"{name}_against_tar_sha256sum", coreutils / ours, "ratio", at_least=TAR_RATIO)
    for openssl in sterner:  # where sha256sum does not use the processor's SHA unit
        print_figure(f"{name}_against_tar_openssl", openssl / ours, "ratio")
    print_figure(f"{name}_speed", total / ours / 1e6, "MB/s")
    print_figure(f"{name}_files", (megabytes + captions) / ours, "files/s")


def _race_hashing(file: Path, arguments: argparse.Namespace) -> None:
    racers: list[Callable[[], object]] = [lambda: sha256_of(file), lambda: _run(["sha256sum", str(file)])]
    ours, coreutils = _race(arguments.rounds, racers)
    report("hash.against_sha256sum", coreutils / ours, "ratio", at_least=TAR_RATIO)
    print_figure("hash.speed", file.stat().st_size / ours / 1e6, "MB/s")


def write_dataset(folder: Path, *, megabytes: int, captions: int) -> int:
    """Images of 1 MB and small captions; the bytes written."""
    folder.mkdir()
    source = random.Random(7)
    for number in range(megabytes):
        (folder / f"image_{number:05d}.png").write_bytes(source.randbytes(1_000_000))
    for number in range(captions):
        (folder / f"image_{number:05d}.txt").write_text(f"caption number {number}")
    return sum(file.stat().st_size for file in folder.iterdir())


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=400)
    parser.add_argument("--captions", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=None, help="where to work (default: the system's place)")
    return parser.parse_args()


def _race(rounds: int, racers: Sequence[Callable[[], object]]) -> list[float]:
    """The best time of each; they take turns, so that a busy moment does not affect only one."""
    best = [float("inf")] * len(racers)
    for _ in range(rounds):
        for index, racer in enumerate(racers):
            began = time.perf_counter()
            racer()
            best[index] = min(best[index], time.perf_counter() - began)
    return best


def _pipe(folder: Path, hasher: list[str]) -> None:
    with subprocess.Popen(["tar", "-C", str(folder), "-cf", "-", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(hasher, stdin=tar.stdout, stdout=subprocess.DEVNULL, check=True)
    if tar.returncode:
        raise subprocess.CalledProcessError(tar.returncode, "tar")


def _run(argv: list[str]) -> None:
    subprocess.run(argv, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    sys.exit(main())
