"""Logs and traces that a command reads: what cannot be read is refused in one line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stationmaster.errors import NotFound, UserError

_CHUNK_BYTES = 1 << 20
_HINT = "pass the file that a trainer's output was written to"
# Bytes that a log may have: text of any encoding, line ends, tabs, escapes, redraws, and the NULs of a host that died.
_OF_LOGS = bytes([0, 7, 8, 9, 10, 11, 12, 13, 27, *range(32, 127), *range(128, 256)])
_LARGEST_SHARE_OF_OTHERS = 0.02  # in compressed files and weights it is about a tenth
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")


def read_chunks(path: Path) -> Iterator[bytes]:
    """The file's bytes, in order. Raises NotFound, and UserError for what is not a readable log."""
    try:
        with path.open("rb") as stream:
            is_first = True
            while chunk := stream.read(_CHUNK_BYTES):
                _require_text(path, chunk, is_first=is_first)
                is_first = False
                yield chunk
    except FileNotFoundError as problem:
        raise NotFound(f"there is no file {path}", hint=_HINT) from problem
    except IsADirectoryError as problem:
        raise UserError(f"{path} is a folder, not a log", hint=_HINT) from problem
    except PermissionError as problem:
        hint = f"make it readable (chmod u+r {path}), or run this as its owner"
        raise UserError(f"cannot read {path}: permission denied", hint=hint) from problem
    except OSError as problem:
        raise UserError(f"cannot read {path}: {problem.strerror or problem}", hint=_HINT) from problem


def _require_text(path: Path, chunk: bytes, *, is_first: bool) -> None:
    if is_first and chunk.startswith(_UTF_16):
        hint = f"convert it first: iconv -f UTF-16 -t UTF-8 {path} > log.txt"
        raise UserError(f"{path} is UTF-16 text, as some Windows shells write it", hint=hint)
    others = len(chunk.translate(None, _OF_LOGS))
    if others > _LARGEST_SHARE_OF_OTHERS * (len(chunk) - chunk.count(0)):
        raise UserError(f"{path} is a binary file, not a log", hint=_HINT)
