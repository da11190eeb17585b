"""Whoever still writes to a partial file is ended before somebody else goes on with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trackside.transfer.writers import end_writers
from trackside.verbs import run_verb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="capability: only Linux shows who has a file open")

HOLD = "import signal, sys, time; f = open(sys.argv[1], 'r+b'); {0}; print('open', flush=True); time.sleep(600)"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"


@contextmanager
def holder(tmp_path: Path, file: Path, *, name: str = "rsync", doing: str = "0") -> Iterator[subprocess.Popen[bytes]]:
    """A real process called `name` that has the file open."""
    program = tmp_path / name
    if not program.exists():
        program.symlink_to(sys.executable)
    process = subprocess.Popen([program, "-c", HOLD.format(doing), str(file)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process:
        assert process.stdout.readline() == b"open\n"
        yield process
        process.kill()


def test_an_old_receiver_is_asked_to_end(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"half")
    with holder(tmp_path, tmp_path / "part") as old:
        assert end_writers(str(tmp_path / "part")) == 1
        assert old.wait(timeout=150) == -signal.SIGTERM


def test_one_that_does_not_listen_is_killed(tmp_path: Path) -> None:
    (tmp_path / "part").write_bytes(b"half")
    with holder(tmp_path, tmp_path / "part", doing=STUBBORN) as old:
        end_writers(str(tmp_path / "part"), patience_seconds=0.2)
        assert old.wait(timeout=150) == -signal.SIGKILL


def test_other_programs_and_other_files_are_left_alone(tmp_path: Path) -> None:
    for name in ("part", "other"):
        (tmp_path / name).write_bytes(b"half")
    with (
        holder(tmp_path, tmp_path / "part", name="trainer") as trainer,
        holder(tmp_path, tmp_path / "other") as elsewhere,
    ):
        assert end_writers(str(tmp_path / "part")) == 0
        assert trainer.poll() is None
        assert elsewhere.poll() is None


def test_hashing_ends_writers_only_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "part").write_bytes(b"half")
    with holder(tmp_path, tmp_path / "part") as old:
        assert run_verb(["--root", str(tmp_path), "hash", "part"]) == 0
        assert old.poll() is None
        assert run_verb(["--root", str(tmp_path), "hash", "--chunks", "3", "--end-writers", "part"]) == 0
        assert old.wait(timeout=150) == -signal.SIGTERM
    assert '"size": 4' in capsys.readouterr().out
