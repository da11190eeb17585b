"""`metrics` shows the series of a job or a file, exports them, imports others, and names what a person got wrong."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.model import State
from stationmaster.series.blocks import block_of
from stationmaster.store.writes import Write
from tests.support.commands.cli_runs import COMMAND, Home
from tests.support.jobs.spine_values import spec
from tests.support.programs import ROOT
from tests.support.series.simulated_run import simulated_run

FILES = ROOT / "tests" / "fixtures" / "series"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with the ended job `done`, and the rows that a training of 20 steps recorded."""
    with Home(tmp_path_factory.mktemp("filled")) as opened:
        opened.path.mkdir()
        opened.store.jobs.submit(spec("done", name="cats"))
        (lease,) = opened.store.leases.claim("worker", limit=1, seconds=3600)
        blocks = tuple(block_of(table, attempt=1) for table in simulated_run(20.5 / 3600) if len(table))
        opened.store.leases.settle(
            lease, Write(job=replace(lease.job, state=State.ENDED, attempt=1), due_in=None, series=blocks)
        )
        yield opened


def test_a_job_is_shown_with_its_numbers_and_lines_within_80_characters(filled: Home) -> None:
    ran = filled.run("metrics", "cats")
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[0] == "done"
    assert "steps      " in ran.out
    line = next(line for line in ran.out.splitlines() if line.startswith("loss "))
    assert set(line) & set("▁▂▃▄▅▆▇█")
    assert max(map(len, ran.out.splitlines())) <= 80


def test_json_has_the_series_the_summary_and_the_tables(filled: Home) -> None:
    found = filled.run("metrics", "done", "--series", "loss", "--from", "5", "--to", "10", "--json").json()
    assert found["subject"] == "done"
    (loss,) = found["series"]
    assert 5 <= min(loss["x"]) <= max(loss["x"]) == 10
    assert (loss["name"], loss["axis"], loss["exact"], loss["count"]) == ("loss", "step", True, len(loss["x"]))
    assert [figure["name"] for figure in found["summary"]["series"]] == ["loss"]
    assert found["summary"]["last_step"] == 10


def test_a_file_is_shown_without_a_home(tmp_path: Path) -> None:
    with Home(tmp_path) as home:
        ran = home.run("metrics", str(FILES / "tensorboardx"))
        assert ran.code == 0, ran.err
        assert "loss/average" in ran.out
        assert not home.path.exists(), "nothing is stored"


def test_plain_characters_where_blocks_cannot_be_printed(home: Home) -> None:
    done = subprocess.run(
        [COMMAND, "metrics", str(FILES / "run-cats.wandb")],
        env={**home.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.isascii()
    line = next(line for line in done.stdout.splitlines() if line.startswith("loss "))
    assert "#" in line


def test_export_and_import_again(filled: Home, tmp_path: Path) -> None:
    assert "rows to" in filled.run("metrics", "done", "--export", str(tmp_path / "run.csv")).out
    (loss,) = filled.run("metrics", str(tmp_path / "run.csv"), "--series", "loss", "--json").json()["series"]
    assert loss["x"][-1] == 20
    assert filled.run("metrics", "done", "--export", str(tmp_path / "run.db"), "--json").json()["rows"] >= 2
    assert filled.run("metrics", str(tmp_path / "run.db"), "--json").json()["subject"] == "done"
    imported = filled.run("metrics", "done", "--import", str(FILES / "run-cats.wandb"))
    assert "eval.score" in imported.out
    names = [series["name"] for series in filled.run("metrics", "done", "--json").json()["series"]]
    assert "eval.score" in names


def test_one_table_is_printed_as_csv(filled: Home) -> None:
    heading, first, *_ = filled.run("metrics", "done", "--table", "StepMetric").out.splitlines()
    assert heading.startswith("id,step,timestamp,loss")
    assert first.startswith("1,")


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("nothing",), 6, "there is no job nothing"),
        (("nothing.db",), 6, "there is no file nothing.db"),
        (("vastai/1",), 6, "vastai/1"),
        ((str(FILES / "make.py"),), 2, "is none of the files that hold series"),
        ((str(FILES / "tensors"), "--series", "x"), 6, "there is no series x"),
        ((str(FILES / "tensors"), "--table", "x"), 6, "there are no rows of x"),
        ((str(FILES / "tensors"), "--export", "x.doc"), 2, "no suffix that names a format"),
        ((str(FILES / "tensors"), "--import", "x"), 2, "only with a job"),
        ((str(FILES / "tensors"), "--columns", "0"), 2, "columns"),
        ((str(FILES / "tensors"), "--from", "9", "--to", "5"), 2, "--from 9 is after --to 5"),
    ],
)
def test_bad_input_is_one_line_and_a_hint(home: Home, words: tuple[str, ...], code: int, problem: str) -> None:
    ran = home.run("metrics", *words)
    assert (ran.code, ran.out) == (code, "")
    first, hint = ran.err.strip().splitlines()
    assert first.startswith("error: ")
    assert problem in first
    assert hint.startswith("hint: ")


def test_the_points_of_json_are_one_line(home: Home) -> None:
    ran = home.run("metrics", str(FILES / "tensors"), "--json")
    assert len(ran.out.splitlines()) == 1
    assert json.loads(ran.out)["notes"] == []
