"""A program is asked for its output and cannot hang who asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.waiting import until
from trackside.machine.query import Query


def query(folder: Path, script: str, *, limit_seconds: float = 30.0) -> Query:
    path = folder / "program"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(0o755)
    return Query(str(path), limit_seconds=limit_seconds)


def test_the_output_is_returned_with_what_it_cost(tmp_path: Path) -> None:
    asked = query(tmp_path, 'echo "first: $1"; echo second >&2')
    assert asked.ask("--json") == "first: --json\n"
    assert asked.cpu_seconds > 0.0
    assert not asked.hung


def test_a_long_output_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("x" * 300_000)
    assert query(tmp_path, f"cat {tmp_path}/text").ask() == "x" * 300_000


def test_a_failure_has_no_answer(tmp_path: Path) -> None:
    asked = query(tmp_path, "echo half; exit 9")
    assert asked.ask() is None
    assert not asked.hung


def test_a_missing_program_has_no_answer(tmp_path: Path) -> None:
    assert Query(str(tmp_path / "missing")).ask() is None


@pytest.mark.parametrize("script", ["exec sleep 1000", "exec >&-; exec sleep 1000", "sleep 1000 & wait"])
def test_a_program_that_hangs_is_killed_and_can_be_asked_again(tmp_path: Path, script: str) -> None:
    asked = query(tmp_path, f"test -e {tmp_path}/healthy && echo yes && exit\n{script}", limit_seconds=0.05)
    assert asked.ask() is None
    assert asked.hung
    (tmp_path / "healthy").touch()
    assert until(lambda: asked.ask() == "yes\n")
