"""A disk that is soon full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.capabilities import require


@contextmanager
def small_disk(folder: Path, *, mebibytes: int, inodes: int | None = None) -> Iterator[Path]:
    """A real file system in a new folder, with this much room; it is gone with the block."""
    require("own disk")
    folder.mkdir(parents=True)
    room = f"size={mebibytes}m" + (f",nr_inodes={inodes}" if inodes else "")
    subprocess.run(["mount", "-t", "tmpfs", "-o", room, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        while folder.is_mount():  # once more where it was also mounted read-only
            subprocess.run(["umount", "--lazy", str(folder)], check=True)
