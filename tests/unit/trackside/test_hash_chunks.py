"""A file's pieces are hashed on the machine, so that only what is missing is sent again."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from trackside.transfer.hashing import hash_chunks
from trackside.verbs import run_verb


def test_every_piece_has_its_hash_and_the_last_may_be_shorter(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abcdefg")
    (tmp_path / "empty").touch()
    found = hash_chunks(str(tmp_path), ["file", "empty", "missing"], 3)
    pieces = [hashlib.sha256(piece).hexdigest() for piece in (b"abc", b"def", b"g")]
    assert found == {"file": {"chunks": pieces, "size": 7}, "empty": {"chunks": [], "size": 0}, "missing": None}


@pytest.mark.parametrize("size", ["0", "-1", "many", str(2**40)])
def test_pieces_of_no_size_are_misuse(tmp_path: Path, size: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_verb(["--root", str(tmp_path), "hash", "--chunks", size, "file"]) != 0
    assert "--chunks" in capsys.readouterr().err
