"""A new store in a SQLite file, without the time that making its tables takes."""

from __future__ import annotations

import secrets
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path

from stationmaster.store.engine import Database
from stationmaster.store.store import Store


def put_new_store(path: Path) -> None:
    """Write what a store that was just opened for the first time has in its file; the installation's id is its own."""
    image, made_id = _image()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(image.replace(made_id, secrets.token_hex(4).encode()))


@cache
def _image() -> tuple[bytes, bytes]:
    """The file, and the installation's id in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with closing(Store(Database(f"sqlite:///{path}"))) as store:
            made_id = store.installation_id.encode()
        return path.read_bytes(), made_id
