"""Small files that a reader sees whole or not at all, also on a disk that is full."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from typing import Any, Iterator, Mapping


def read_record(path: str) -> dict[str, Any] | None:
    """Return the JSON object in a file; None when the file is missing or damaged."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_record(path: str, record: Mapping[str, Any], *, durable: bool = False) -> None:
    """Replace the file by a rename; `durable` also waits for the disk."""
    write_text(path, json.dumps(record) + "\n", durable=durable)


def write_text(path: str, text: str, *, durable: bool = False) -> None:
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, ".%s.%d.tmp" % (name, os.getpid()))
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        remove_file(temporary)
        raise


def overwrite_text(path: str, text: str) -> None:
    """Write into the file that is there, which needs no further room; its first line is never half written."""
    content = text.encode()
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(descriptor, content, 0)
        os.ftruncate(descriptor, len(content))
    finally:
        os.close(descriptor)


@contextmanager
def unless_unwritable(problems: list[str]) -> Iterator[None]:
    """Go on after the block where the disk takes nothing; the problem is added to `problems`, for home to hear of."""
    try:
        yield
    except OSError as error:
        problems.append(str(error))


def remove_file(path: str) -> None:
    """Remove the file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
