"""Pack the installed trackside package into one file that any Python can run.

It holds each module as source and as code compiled by this Python. A machine with the same Python version runs the
compiled code; any other ignores it and compiles the source.
"""

from __future__ import annotations

import hashlib
import importlib.util
import io
import marshal
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import trackside
from stationmaster.files import write_atomically

_MAIN = b"import sys\n\nfrom trackside.__main__ import main\n\nsys.exit(main())\n"
_SHEBANG = b"#!/usr/bin/env python3\n"

#: The earliest time that a zip file can hold: the bytes must not depend on when they were made.
_NO_TIME = (1980, 1, 1, 0, 0, 0)

#: Later formats mark values that are referenced elsewhere in the process, so their bytes differ between processes.
_STEADY_MARSHAL = 2

#: The header of a .pyc file that is never compared with its source (PEP 552): both come in the same archive.
_UNCHECKED = (1).to_bytes(4, "little") + bytes(8)


def build_pyz(folder: Path) -> Path:
    """Write `trackside-<hash>.pyz` in `folder` once, named after the sources and this Python; its path."""
    named_after = hashlib.sha256(importlib.util.MAGIC_NUMBER)
    for name, source in _sources().items():
        named_after.update(b"%s\0%d\0%s" % (name.encode(), len(source), source))
    target = folder / f"trackside-{named_after.hexdigest()[:16]}.pyz"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(target, pyz_bytes())
    return target


@cache
def pyz_bytes() -> bytes:
    """Return the archive: the same sources and the same Python give the same bytes.

    It is small, so it is not compressed: the machine does not have to decompress it at every call.
    """
    buffer = io.BytesIO(_SHEBANG)
    buffer.seek(0, io.SEEK_END)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py", _NO_TIME), _MAIN)
        for name, source in _sources().items():
            archive.writestr(zipfile.ZipInfo(name, _NO_TIME), source)
            archive.writestr(zipfile.ZipInfo(f"{name}c", _NO_TIME), _compiled(name, source))
    return buffer.getvalue()


@cache
def _sources() -> Mapping[str, bytes]:
    package = Path(str(trackside.__file__)).parent
    return {
        f"trackside/{path.relative_to(package).as_posix()}": path.read_bytes() for path in sorted(package.rglob("*.py"))
    }


def _compiled(name: str, source: bytes) -> bytes:
    code = compile(source, f"trackside.pyz/{name}", "exec", dont_inherit=True, optimize=0)
    return importlib.util.MAGIC_NUMBER + _UNCHECKED + marshal.dumps(code, _STEADY_MARSHAL)
