"""Small files that a reader sees whole or not at all."""

from __future__ import annotations

import json
import os
from typing import Any, Mapping


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


def remove_file(path: str) -> None:
    """Remove the file if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
