"""The built page: its files, read once, and its start with a policy of its own for every answer.

`web/` is built into the folder `page` beside this file while a wheel is built; a checkout has it after `make page`.
"""

from __future__ import annotations

import mimetypes
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "page"
START = "index.html"
_FOR_EVER = "public, max-age=31536000, immutable"
_NONCE = b"__NONCE__"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    content: bytes
    compressed: bytes | None
    media_type: str
    is_named_by_content: bool  # its name changes with its content: browsers may keep it

    def response(self, request: Request) -> Response:
        headers = {"Vary": "Accept-Encoding"}
        if self.is_named_by_content:
            headers["Cache-Control"] = _FOR_EVER
        content = self.content
        if self.compressed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            content, headers["Content-Encoding"] = self.compressed, "gzip"
        return Response(content, headers=headers, media_type=self.media_type)


class PageFiles:
    """The files by their path; none in an installation that was built without the page."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: Mapping[str, PageFile] = dict(_read(folder)) if folder.is_dir() else {}

    def file(self, path: str) -> PageFile | None:
        return None if path == START else self._files.get(path)

    def start(self) -> Response | None:
        """The page itself, whatever address it is opened at; its script shows what belongs there.

        Libraries put style elements into it while a dialog is open: those that carry this answer's number are allowed.
        """
        start = self._files.get(START)
        if start is None:
            return None
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; object-src 'none'; "
            "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
        )
        content = start.content.replace(_NONCE, nonce.encode())
        return Response(content, headers={"Content-Security-Policy": policy}, media_type=start.media_type)


def _read(folder: Path) -> list[tuple[str, PageFile]]:
    files = sorted(file for file in folder.rglob("*") if file.is_file() and file.suffix != ".gz")
    return [(file.relative_to(folder).as_posix(), _page_file(file, folder)) for file in files]


def _page_file(file: Path, folder: Path) -> PageFile:
    compressed = Path(f"{file}.gz")
    return PageFile(
        content=file.read_bytes(),
        compressed=compressed.read_bytes() if compressed.is_file() else None,
        media_type=mimetypes.guess_type(file.name)[0] or "application/octet-stream",
        is_named_by_content=file.parent == folder / "assets",
    )
