"""Temporary files of tests are in memory only where that harms nothing."""

from __future__ import annotations

from pathlib import Path

from tests.support.temporary_files import folder_in_memory


def test_a_folder_that_somebody_named_is_kept(tmp_path: Path) -> None:
    assert folder_in_memory({"TMPDIR": "/somewhere"}, tmp_path) is None


def test_without_such_a_folder_there_is_none(tmp_path: Path) -> None:
    assert folder_in_memory({}, tmp_path / "shm") is None


def test_a_folder_without_room_is_not_taken() -> None:
    assert folder_in_memory({}, Path("/proc")) is None
