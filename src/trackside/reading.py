"""The first bytes of a file, by which a store of files knows what kind it is; a small file as a whole."""

from __future__ import annotations

import base64
from typing import Any

from trackside.errors import Misuse
from trackside.root import Root

_MOST_BYTES = 1 << 20  # more goes by rsync or a signed request, not as one answer


def read_first(root: Root, path: str, count: int) -> dict[str, Any]:
    """The first `count` bytes, fewer where the file ends before. Raises Misuse and OSError."""
    if count > _MOST_BYTES:
        raise Misuse("--bytes %d is more than %d" % (count, _MOST_BYTES))
    with open(root.inside(path), "rb") as file:
        return {"data": base64.b64encode(file.read(count)).decode()}
