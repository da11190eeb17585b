"""Hash files of any size with SHA-256, a piece at a time."""

from __future__ import annotations

import hashlib
import os
from typing import Any, BinaryIO, Iterator

_PIECE_BYTES = 1 << 20


def hash_files(root_path: str, paths: list[str]) -> dict[str, Any]:
    """Return SHA-256 and size of each path as given, relative ones under the root; None for what is not a file."""
    return {path: _hash_file(os.path.join(root_path, path)) for path in paths}


def hash_chunks(root_path: str, paths: list[str], chunk_bytes: int) -> dict[str, Any]:
    """Return size and the SHA-256 of each successive piece of `chunk_bytes`, the last one shorter; None: not a file."""
    return {path: _hash_chunks(os.path.join(root_path, path), chunk_bytes) for path in paths}


def sha256_of(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    while True:
        piece = file.read(_PIECE_BYTES)
        if not piece:
            return digest.hexdigest()
        digest.update(piece)


def sha256_of_steady_file(path: str) -> str | None:
    """Return the hash of a file that did not change while it was read; None if it did or is gone."""
    try:
        with open(path, "rb") as file:
            before = os.fstat(file.fileno())
            digest = sha256_of(file)
            after = os.stat(path)
    except OSError:
        return None
    is_same = (before.st_ino, before.st_size, before.st_mtime_ns) == (after.st_ino, after.st_size, after.st_mtime_ns)
    return digest if is_same else None


def _hash_file(path: str) -> dict[str, Any] | None:
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return {"sha256": sha256_of(file), "size": file.tell()}
    except OSError:
        return None


def _hash_chunks(path: str, chunk_bytes: int) -> dict[str, Any] | None:
    try:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            return {"chunks": list(_chunk_hashes(file, chunk_bytes)), "size": file.tell()}
    except OSError:
        return None


def _chunk_hashes(file: BinaryIO, chunk_bytes: int) -> Iterator[str]:
    while True:
        piece = file.read(chunk_bytes)
        if not piece:
            return
        yield hashlib.sha256(piece).hexdigest()
