"""`analyze` shows the report of a job or of a file, on a terminal and in a pipe, and names what a person got wrong."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Evidence, Health, LogError, Recommendation, Report, Severity, Summary
from stationmaster.cli.analysis_lines import analysis_lines
from tests.support.commands.cli_runs import Home
from tests.unit.run_files.test_cut_off_databases import write_run


def report(**changes: object) -> Report:
    summary = Summary(
        health_score=Health.CRITICAL,
        peak_memory_gb=119.2,
        total_memory_gb=120.0,
        training_completed=False,
        steps_completed=281,
        duration_minutes=27.5,
        memory_pool="system",
        total_steps=1000,
    )
    first = Recommendation(
        rule="workers",
        severity=Severity.CRITICAL,
        lever=Lever.WORKERS,
        title="Four worker processes held 61 GB of the memory when the system ended the training",
        action="Load the data in the training process: set the number of workers to 0.",
        impact="Frees 15.2 GB per worker.",
        config_path="config.process[0].datasets[0].num_workers",
        current_value=4,
        recommended_value=0,
        evidence=(Evidence(what="memory of the workers at the peak", value=61.0, unit="GB", threshold=24.0),),
    )
    error = LogError(
        timestamp=1_790_000_000.0,
        level="ERROR",
        message="RuntimeError: DataLoader worker (pid 12) is killed by signal: Killed.",
        memory_at_time_gb=119.0,
        traceback="Traceback (most recent call last):\n  boom",
    )
    values = {"job_id": "a", "summary": summary, "recommendations": (first,), "log_errors": (error,), **changes}
    return Report(**values)  # type: ignore[arg-type]


def test_the_lines_have_the_summary_the_change_its_evidence_and_the_log() -> None:
    lines = list(analysis_lines(report()))
    assert lines[0] == "Critical  119 GB of 120 GB (99 %)  281 of 1000 steps  27.5 min"
    text = "\n".join(lines)
    for part in (
        "1. CRITICAL  Four worker processes",
        "config.process[0].datasets[0].num_workers: 4 -> 0",
        "- memory of the workers at the peak: 61 GB (threshold 24 GB)",
        "119 GB in use",
        "killed by signal: Killed.",
    ):
        assert part in text
    assert "boom" not in text
    assert max(map(len, lines)) <= 80
    assert "| Traceback (most recent call last):" in "\n".join(analysis_lines(report(), verbose=True))


def test_a_machine_s_text_cannot_move_the_cursor() -> None:
    error = LogError(timestamp=None, level="ERROR", message="\x1b[2Jgone", memory_at_time_gb=None, traceback="\x1b[2J")
    assert not any("\x1b" in line for line in analysis_lines(report(log_errors=(error,)), verbose=True))


def test_a_run_without_findings_says_whether_that_is_good() -> None:
    good = report(recommendations=(), log_errors=())
    assert "No change to recommend." in list(analysis_lines(good))


def test_a_file_is_analysed_without_a_home(tmp_path: Path) -> None:
    write_run(tmp_path / "aitk_db.db", steps=50)
    whole = (tmp_path / "aitk_db.db").read_bytes()
    (tmp_path / "cut.db").write_bytes(whole[: len(whole) // 2])
    with Home(tmp_path) as home:
        found = home.run("analyze", "aitk_db.db", "--json").json()
        assert (found["job_id"], found["summary"]["steps_completed"]) == ("cats", 50)
        assert home.run("analyze", str(tmp_path)).code == 0
        cut = home.run("analyze", "cut.db")
        assert cut.code == 0, cut.err
        assert "note: the file was cut off or is damaged" in cut.out
        assert not home.path.exists(), "nothing is stored"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("analyze", "none"), "there is no job none"),
        (("analyze", "none.db"), "there is no file none.db"),
        (("analyze", "two.db"), "two.db holds 2 jobs: dogs, cats"),
        (("analyze", "two.db", "--job", "birds"), "has no job birds"),
        (("analyze", "two.db", "--job", "cats", "--log", "nolog"), "there is no log nolog"),
        (("analyze", "two.db", "--job", "cats", "--config", "noconfig"), "there is no config noconfig"),
        (("analyze", "two.db", "--job", "cats", "--config", "broken.yaml"), "broken.yaml"),
        (("analyze", "two.db", "--job", "cats", "--again"), "--again and --offers are for jobs"),
        (("analyze", "./text"), "is not a run's database"),
        (("analyze", "/"), "holds no aitk_db.db"),
    ],
)
def test_what_a_person_got_wrong_is_named_in_one_line_with_a_hint(
    arguments: tuple[str, ...], problem: str, tmp_path: Path
) -> None:
    for job in ("cats", "dogs"):
        write_run(tmp_path / "two.db", steps=3, job=job)
    with closing(sqlite3.connect(tmp_path / "two.db")) as connection:
        connection.execute("UPDATE StepMetric SET timestamp = timestamp + 10 WHERE job_id = 'dogs'")
        connection.commit()
    (tmp_path / "text").write_text("hello\n")
    (tmp_path / "broken.yaml").write_text("job: [\n")
    with Home(tmp_path) as home:
        ran = home.run(*arguments)
    assert ran.code != 0
    assert problem in ran.err.splitlines()[0]
    assert ran.err.splitlines()[1].startswith("hint: ")
    assert len(ran.err.splitlines()) == 2
    assert ran.out == ""
