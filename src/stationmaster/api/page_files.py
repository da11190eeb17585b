"""The built page: its files, read once, and its start with a policy of its own for every answer.

`web/` is built into the folder `page` beside this file while a wheel is built; a checkout has it after `make page`.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from stationmaster.api.file_response import matches

FOLDER = Path(__file__).parent / "page"
START = "index.html"
_FOR_EVER = "public, max-age=31536000, immutable"
_NONCE = b"__NONCE__"
# The system's own table differs between computers, and browsers run no script of an unexpected type.
_MEDIA_TYPES: Mapping[str, str] = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    content: bytes
    compressed: bytes | None
    media_type: str
    etag: str
    is_named_by_content: bool  # its name changes with its content: browsers may keep it

    def response(self, request: Request) -> Response:
        headers = {"ETag": self.etag, "Vary": "Accept-Encoding"}
        if self.is_named_by_content:
            headers["Cache-Control"] = _FOR_EVER
        if matches(request.headers.get("if-none-match"), self.etag):
            return Response(status_code=304, headers=headers)
        content = self.content
        if self.compressed is not None and accepts_gzip(request.headers.get("accept-encoding", "")):
            content, headers["Content-Encoding"] = self.compressed, "gzip"
        return Response(content, headers=headers, media_type=self.media_type)


class PageFiles:
    """The files by their path; none in an installation that was built without the page."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: Mapping[str, PageFile] = _read(folder) if folder.is_dir() else {}

    def file(self, path: str) -> PageFile | None:
        return None if path == START else self._files.get(path)

    def start(self) -> Response | None:
        """The page itself, whatever address it is opened at; its script shows what belongs there.

        Libraries put style elements into it while a dialog is open: those that carry this answer's number are allowed.
        It has no ETag: a browser would combine the new number's policy with its old copy of the page.
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


def accepts_gzip(header: str) -> bool:
    """Whether an Accept-Encoding header allows it (RFC 9110): its own word counts more than `*`.

    >>> [accepts_gzip(header) for header in ("br, gzip", "gzip;q=0, *", "*;q=0.1", "GZIP; q=1.0", "", "gzipped")]
    [True, False, True, True, False, False]
    """
    weights: dict[str, float] = {}
    for each in header.lower().split(","):
        coding, _, parameter = each.partition(";")
        weights[coding.strip()] = _weight(parameter)
    return weights.get("gzip", weights.get("*", 0.0)) > 0.0


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0


@cache
def _read(folder: Path) -> Mapping[str, PageFile]:
    """The files of a folder, which several services of one process share."""
    files = sorted(file for file in folder.rglob("*") if file.suffix in _MEDIA_TYPES)
    return {file.relative_to(folder).as_posix(): _page_file(file, folder) for file in files}


def _page_file(file: Path, folder: Path) -> PageFile:
    content, compressed = file.read_bytes(), Path(f"{file}.gz")
    return PageFile(
        content=content,
        compressed=compressed.read_bytes() if compressed.is_file() else None,
        media_type=_MEDIA_TYPES[file.suffix],
        # Weak: the compressed file has the same tag.
        etag=f'W/"{hashlib.sha256(content).hexdigest()[:32]}"',
        is_named_by_content=file.parent == folder / "assets",
    )
