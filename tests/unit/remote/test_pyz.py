from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from stationmaster.remote.pyz import build_pyz, pyz_bytes


def test_the_same_sources_give_the_same_bytes_and_are_written_once(tmp_path: Path) -> None:
    first = build_pyz(tmp_path / "new" / "folder")
    written_at = first.stat().st_mtime_ns
    assert build_pyz(tmp_path / "new" / "folder") == first
    assert first.stat().st_mtime_ns == written_at
    assert first.read_bytes() == pyz_bytes()
    assert [path.name for path in first.parent.iterdir()] == [first.name]


def test_it_runs_without_the_package_being_installed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    pyz = build_pyz(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-I", "-S", pyz, "--root", tmp_path, "hash", "file"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in answer.stdout
