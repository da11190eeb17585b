"""The steps' logs as one text."""

from __future__ import annotations

import os
from typing import BinaryIO, Iterator

from trackside.root import Root

_PIECE_BYTES = 1 << 16


def write_logs(root: Root, sink: BinaryIO, *, step: int | None, tail_lines: int | None) -> None:
    """Copy the logs, oldest first, to `sink`: of one step or of all, whole or only their last lines."""
    logs = [root.try_folder(index, number).log for index, number in root.tries() if step in (None, index)]
    paths = [path for path in logs if os.path.isfile(path)]
    skip = 0
    if tail_lines is not None:
        paths, skip = _begin_of_tail(paths, tail_lines)
    for path in paths:
        with open(path, "rb") as file:
            file.seek(skip)
            skip = 0
            for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
                sink.write(piece)
    sink.flush()


def _begin_of_tail(paths: list[str], lines: int) -> tuple[list[str], int]:
    """Return the paths that hold the last lines, and the offset in the first where they begin."""
    if lines <= 0:
        return [], 0
    wanted = lines
    is_end = True
    for index in range(len(paths) - 1, -1, -1):
        for offset, piece in _pieces_backwards(paths[index]):
            end = len(piece)
            if is_end:
                end -= piece.endswith(b"\n")  # the end of the last line does not separate two lines
                is_end = False
            found = piece.rfind(b"\n", 0, end)
            while found >= 0:
                wanted -= 1
                if wanted == 0:
                    return paths[index:], offset + found + 1
                found = piece.rfind(b"\n", 0, found)
    return paths, 0


def _pieces_backwards(path: str) -> Iterator[tuple[int, bytes]]:
    with open(path, "rb") as file:
        offset = os.fstat(file.fileno()).st_size
        while offset > 0:
            begin = max(0, offset - _PIECE_BYTES)
            file.seek(begin)
            yield begin, file.read(offset - begin)
            offset = begin
