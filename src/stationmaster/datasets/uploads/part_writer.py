"""Writes one piece of an uploaded file to the upload's folder as its bytes arrive."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from stationmaster.datasets.tree import shown
from stationmaster.datasets.uploads.folder import ArrivedFile, Charge, UploadFolder, charged
from stationmaster.errors import DatasetInvalid, UserError


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Bytes of a file from `offset` on; `size` is that of the whole file."""

    path: str
    size: int
    offset: int = 0
    restart: bool = False
    sha256: str | None = None  # of the whole file


class PartWriter:
    """Not for several threads at once. Several writers of one file are safe: at each offset one of them wins."""

    def __init__(self, folder: UploadFolder, piece: Piece, *, charge: Charge) -> None:
        """Raises WrongOffset, and what `charge` raises."""
        part = folder.begin_part(piece.path, piece.size, offset=piece.offset, restart=piece.restart, charge=charge)
        self._folder = folder
        self._charge = charge
        self._piece = piece
        self._offset = piece.offset
        self._digest = hashlib.sha256() if piece.offset == 0 else None  # else it is read again at the end
        try:
            self._descriptor: int | None = os.open(part, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            raise folder.wrong_offset(piece.path) from None  # another writer began anew at this moment

    def append(self, data: bytes) -> None:
        """Raises WrongOffset if another writer was faster, UserError for more bytes than announced, DiskFull."""
        if self._offset + len(data) > self._piece.size:
            raise UserError(f"{shown(self._piece.path)} has more bytes than its announced size")
        self._folder.append(self._piece.path, self._opened(), data, offset=self._offset)
        self._offset += len(data)
        if self._digest is not None:
            self._digest.update(data)

    def finish(self) -> ArrivedFile:
        """How much of the file is there now.

        Raises DatasetInvalid for a wrong SHA-256, or if a folder has its name: what has arrived is dropped.
        """
        path, size = self._piece.path, self._piece.size
        if self._offset < size:
            return ArrivedFile(path=path, received=self._offset, size=size, is_complete=False)
        try:
            self._require_hash()
            replaced = self._folder.finish_part(path, self._opened(), size=size)
        except DatasetInvalid:
            self._folder.drop_part(path)
            self._charge(-charged(size))
            raise
        if replaced:
            self._charge(-replaced)
        return ArrivedFile(path=path, received=size, size=size, is_complete=True)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _require_hash(self) -> None:
        if self._piece.sha256 is not None and self._hash() != self._piece.sha256:
            raise DatasetInvalid(
                f"{shown(self._piece.path)} arrived with another SHA-256 than announced",
                hint="send it again from its first byte",
            )

    def _hash(self) -> str:
        if self._digest is not None:
            return self._digest.hexdigest()
        with os.fdopen(os.dup(self._opened()), "rb") as file:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _opened(self) -> int:
        assert self._descriptor is not None, "used after close"
        return self._descriptor
