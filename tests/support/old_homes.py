"""Homes and stores that an earlier version left behind, put back as they were a moment after its worker was killed."""

from __future__ import annotations

import base64
import json
import os
import re
import secrets
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

_FIXTURES = Path(__file__).parents[1] / "fixtures" / "old_homes"
_INSTALLATION = "oldhome0"  # the id of every old home; each copy gets its own, which identifies its machines
_PLACEHOLDER = re.compile(r"@(HOME|BIN|AT|SECOND|INODE:)([^@\n]*)@")


class OldHome:
    """The home that one version made, in a folder of this test. Its last moment is now."""

    def __init__(self, version: str, home: Path) -> None:
        self._fixture = _FIXTURES / version
        self._left_at = time.time()
        self._installation = secrets.token_hex(4)
        self.home = home

    def put_files_back(self) -> None:
        for entry in map(json.loads, self._text("home.jsonl").splitlines()):
            path = self.home / entry["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            if "link" in entry:
                path.symlink_to(self._filled_in(entry["link"]))
            elif "folder" in entry:
                path.mkdir(exist_ok=True)
                path.chmod(int(entry["mode"], 8))
            else:
                self._write(path, entry)

    def _write(self, path: Path, entry: dict[str, Any]) -> None:
        if "as" in entry:
            shutil.copyfile(self.home / entry["as"], path)
        elif "base64" in entry:
            path.write_bytes(base64.b64decode(entry["base64"]))
        else:
            path.write_bytes(self._filled_in(entry["text"]).encode() + b" " * entry.get("padding", 0))
        path.chmod(int(entry["mode"], 8))
        moment = self._left_at + entry["at"]
        os.utime(path, (moment, moment))

    def put_sqlite_back(self) -> str:
        """The URL of its store, in a file of the home."""
        self.home.mkdir(exist_ok=True)
        path = self.home / "stationmaster.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(self._dump("sqlite.sql"))
        return f"sqlite:///{path}"

    def put_postgresql_back(self, url: str) -> str:
        """The URL of its store, whose rows are now in this empty database."""
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(self._dump("postgresql.sql").encode())
        return url

    def _dump(self, name: str) -> str:
        return self._filled_in(self._text(name))

    def _text(self, name: str) -> str:
        text = (self._fixture / name).read_text(encoding="utf-8")
        return text.replace(_INSTALLATION, self._installation)

    def _filled_in(self, text: str) -> str:
        return _PLACEHOLDER.sub(lambda found: self._meant[found[1]](found[2]), text)

    @property
    def _meant(self) -> dict[str, Callable[[str], str]]:
        return {
            "HOME": lambda _: str(self.home),
            "BIN": lambda _: str(Path(sys.executable).parent),
            "AT": lambda seconds: repr(self._left_at + float(seconds)),
            "SECOND": lambda seconds: str(int(self._left_at) + int(seconds)),
            "INODE:": self._inode,
        }

    def _inode(self, path: str) -> str:
        """How a log is recognised that was read in part; 0 where the files were not put back."""
        file = self.home / path
        return str(file.stat().st_ino if file.exists() else 0)
