"""The installed trackside package as one file that any Python can run."""

from __future__ import annotations

import hashlib
import io
import os
import zipfile
from pathlib import Path

import trackside

_MAIN = b"import sys\n\nfrom trackside.cli import main\n\nsys.exit(main())\n"
_SHEBANG = b"#!/usr/bin/env python3\n"

#: The earliest moment that a zip file can name: the bytes must not depend on when they were made.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


def build_pyz(folder: Path) -> Path:
    """`trackside-<hash>.pyz` in `folder`; the same sources give the same bytes and are written once."""
    data = pyz_bytes()
    target = folder / f"trackside-{hashlib.sha256(data).hexdigest()[:16]}.pyz"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{os.urandom(8).hex()}.part")
        part.write_bytes(data)
        part.replace(target)
    return target


def pyz_bytes() -> bytes:
    """The archive, uncompressed: it is small, and the far side has nothing to unpack at every call."""
    package = Path(str(trackside.__file__)).parent
    sources = {f"trackside/{path.relative_to(package).as_posix()}": path for path in package.rglob("*.py")}
    buffer = io.BytesIO(_SHEBANG)
    buffer.seek(0, io.SEEK_END)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _NO_TIME), _MAIN)
        for name in sorted(sources):
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), sources[name].read_bytes())
    return buffer.getvalue()
