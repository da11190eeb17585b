"""A big file through a link that breaks fifty times each way, by each way that files travel; part of `make chaos`.

Prints what was sent, and fails where more went over the link than the bound allows.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
import time
from pathlib import Path

from tests.support.chaos.link_cuts import broken_link, move_there_and_back
from tests.support.servers.sshd import Sshd, running_sshd


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=300)
    parser.add_argument("--cuts", type=int, default=50)
    parser.add_argument("--seed", type=int, default=50)
    arguments = parser.parse_args()
    ways = ["sftp", "rsync"] if shutil.which("rsync") else ["sftp"]
    with tempfile.TemporaryDirectory(prefix="link-marathon-") as folder:
        Path(folder, "sshd").mkdir()
        with running_sshd(Path(folder, "sshd")) as sshd:
            for way in ways:
                asyncio.run(_survive(sshd, Path(folder, way), way, arguments))
    return 0


async def _survive(sshd: Sshd, folder: Path, way: str, arguments: argparse.Namespace) -> None:
    folder.mkdir()
    began = time.monotonic()
    async with broken_link(sshd, folder, way=way) as (host, proxy):
        size = arguments.megabytes * 1_000_000
        await move_there_and_back(host, proxy, folder, size=size, cuts=arguments.cuts, seed=arguments.seed)
    print(f"{way}: equal both ways in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
