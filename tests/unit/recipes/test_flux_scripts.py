"""The scripts that run ai-toolkit, ask it and watch it, with a process in its place that keeps the same databases."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.parsers.base import Phase, Reading
from stationmaster.parsers.reader import LogReader
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.recipes.places import BUILTIN
from stationmaster.recipes.registry import find
from tests.support.jobs.recorded_runs import (
    environment,
    facts_of,
    is_recorded,
    kinds_and_steps,
    steps_of,
    without_trackside,
)
from tests.support.waiting import until

SCRIPTS = BUILTIN / "flux-lora"

#: Does what ai-toolkit does with its databases, in its order, and waits for a file `go-on` where a test says so.
STAND_IN = r"""
import json, os, pathlib, signal, sqlite3, sys, time

told = json.loads(pathlib.Path(sys.argv[1]).read_text())
folder, job, here = pathlib.Path(told["folder"]), os.environ["AITK_JOB_ID"], pathlib.Path(told["here"])
losses = sqlite3.connect(folder / "loss_log.db", isolation_level=None)
losses.execute("PRAGMA journal_mode=WAL")
losses.execute("CREATE TABLE IF NOT EXISTS steps (step INTEGER PRIMARY KEY, wall_time REAL NOT NULL)")
losses.execute("CREATE TABLE IF NOT EXISTS metrics (step INTEGER, key TEXT, value_real REAL, value_text TEXT)")


def row(change, *values):
    with sqlite3.connect(told["database"], timeout=30.0) as connection:
        return connection.execute(change, (*values, job)).fetchone()


def says(info, status="running"):
    row("UPDATE Job SET status = ?, info = ? WHERE id = ?", status, info)
    if info in told["pauses"]:
        (here / "waits").write_text(info)
        while not (here / "go-on").exists():
            time.sleep(0.02)
        (here / "go-on").unlink()


def save(step):
    says("Saving model")
    (folder / ("model_%09d.safetensors" % step)).write_bytes(b"model")
    (folder / "optimizer.pt").write_bytes(b"optimizer of %d" % step)
    says("Training")


def bar(step, done, loss):
    share = 100 * done // told["steps"]
    text = "cat_flux: %3d%%|##   | %d/%d [00:0%d<00:09, 1.52it/s, lr: 1.0e-04 loss: %.3e]"
    sys.stderr.write("\r" + text % (share, done, told["steps"], min(9, step), loss))
    sys.stderr.flush()


signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    says("Starting")
    says("Loading model")
    row("UPDATE Job SET step = ? WHERE id = ?", told["start"])
    says("Training")
    for step in range(told["start"], told["steps"]):
        loss = 1.0 / (step + 2)
        bar(step, step, loss)
        if step != told["start"]:
            losses.execute("BEGIN")
            losses.execute("INSERT OR REPLACE INTO steps VALUES (?, ?)", (step, 1000.0 + 2.5 * step))
            values = [(step, "loss/loss", loss), (step, "learning_rate", 0.00012345)]
            losses.executemany("INSERT INTO metrics (step, key, value_real) VALUES (?, ?, ?)", values)
            losses.execute("COMMIT")
        bar(step, step + 1, loss)
        row("UPDATE Job SET step = ? WHERE id = ?", step + 1)
        if row("SELECT save_now FROM Job WHERE id = ?")[0] == 1:
            row("UPDATE Job SET save_now = '0' WHERE id = ?")
            save(step + 1)
        if row("SELECT sample_now FROM Job WHERE id = ?")[0] == 1:
            row("UPDATE Job SET sample_now = '0' WHERE id = ?")
            says("Generating images - 0/1")
            says("Training")
        says("Training - after %d" % (step + 1) if "Training - after %d" % (step + 1) in told["pauses"] else "Training")
    says("Generating images - 0/1")
    says("Training completed", status="completed")
except KeyboardInterrupt:
    print("Job stopped", flush=True)
    sys.exit(0)
if told["dies"]:
    os.kill(os.getpid(), told["dies"])
sys.exit(told["code"])
"""


class Training:
    """train.py with the stand-in, in a process group of its own, its output in a file."""

    def __init__(
        self,
        folder: Path,
        *pauses: str,
        steps: int = 4,
        start: int = 0,
        code: int = 0,
        dies: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.folder, self.output = folder, folder / "output"
        self.database, self.log_file = folder / "work" / "job.db", folder / "log"
        self.output.mkdir(parents=True, exist_ok=True)
        (folder / "run.py").write_text(STAND_IN)
        (folder / "waits").unlink(missing_ok=True)
        places = {"folder": str(self.output), "here": str(folder), "database": str(self.database)}
        told = {**places, "pauses": pauses, "steps": steps, "start": start, "code": code, "dies": dies}
        (folder / "config.json").write_text(json.dumps(told))
        argv = [sys.executable, str(SCRIPTS / "train.py"), f"--trainer={folder}", f"--python={sys.executable}"]
        argv += [f"--config={folder / 'config.json'}", f"--database={self.database}", f"--folder={self.output}"]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, f"--steps={steps}"],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**_environment(), **(environ or {})},
            )

    def log(self) -> str:
        return self.log_file.read_text(encoding="utf-8")

    def wait_at(self, info: str) -> None:
        until(lambda: (self.folder / "waits").exists() and (self.folder / "waits").read_text() == info, info)

    def go_on(self) -> None:
        (self.folder / "waits").unlink()
        (self.folder / "go-on").touch()

    def ask(self, what: str) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, str(SCRIPTS / "ask.py"), what, f"--database={self.database}"]
        return subprocess.run(argv, capture_output=True, text=True, check=False, env=_environment())

    def end(self) -> int:
        """Its exit code, once it and what it left beside it are gone."""
        code = self.process.wait(timeout=60)
        until(lambda: not _group_lives(self.process.pid), "the end of what watches it")
        return code


@pytest.fixture
def started(tmp_path: Path) -> Iterator[list[Training]]:
    """Trainings that a test starts; what is left of them ends with it."""
    trainings: list[Training] = []
    yield trainings
    for training in trainings:
        if _group_lives(training.process.pid):
            os.killpg(training.process.pid, signal.SIGKILL)
        training.process.wait()


def test_both_recipes_have_the_same_scripts() -> None:
    flux, kontext = (dict(find(name).shipped_files()) for name in ("flux-lora@2", "flux-kontext-lora@2"))
    assert flux.items() <= kontext.items()


@pytest.mark.parametrize(("code", "dies", "ended"), [(0, 0, 0), (7, 0, 7), (0, signal.SIGTERM, -signal.SIGTERM)])
def test_the_training_ends_as_ai_toolkit_does(
    started: list[Training], tmp_path: Path, code: int, dies: int, ended: int
) -> None:
    started.append(Training(tmp_path, code=code, dies=dies))
    assert started[0].end() == ended


def test_every_step_is_told_with_its_own_loss(started: list[Training], tmp_path: Path) -> None:
    """The bar shows the loss of step 3 while it still says 2/5; the last line of all is a sample's."""
    started.append(Training(tmp_path, "Loading model", "Generating images - 0/1", steps=5))
    started[0].wait_at("Loading model")
    until(lambda: "[stationmaster] loading: model and dataset" in started[0].log(), "the phase")
    started[0].go_on()
    started[0].wait_at("Generating images - 0/1")
    until(lambda: "[stationmaster] sampling: Generating images - 0/1" in started[0].log(), "the phase")
    started[0].go_on()
    assert started[0].end() == 0
    readings = read(started[0].log())
    told = {reading.step: reading for reading in readings if reading.loss is not None}
    assert {step: reading.loss for step, reading in told.items()} == {
        step: pytest.approx(1.0 / (step + 1), rel=1e-5) for step in (2, 3, 4, 5)
    }
    assert {reading.learning_rate for reading in told.values()} == {0.00012345}
    assert {reading.total_steps for reading in told.values()} == {5}
    assert told[4].steps_per_second == pytest.approx(0.4)
    assert told[4].eta_seconds == 2.0
    phases = [reading.phase for reading in readings if reading.phase is not None]
    assert [phase for phase, before in zip(phases, [None, *phases], strict=False) if phase != before] == [
        *(Phase.LOADING, Phase.TRAINING, Phase.FINISHED, Phase.SAMPLING)
    ]


def test_a_resumed_training_tells_where_it_goes_on(started: list[Training], tmp_path: Path) -> None:
    started.append(Training(tmp_path, "Training", steps=1003, start=1000))
    started[0].wait_at("Training")
    until(lambda: "[stationmaster] step 1000/1003\n" in started[0].log(), "where it goes on")
    started[0].go_on()
    started[0].wait_at("Training")
    os.killpg(started[0].process.pid, signal.SIGKILL)


def test_an_interrupt_of_the_whole_group_ends_it_as_ai_toolkit_ends(started: list[Training], tmp_path: Path) -> None:
    started.append(Training(tmp_path, "Training"))
    started[0].wait_at("Training")
    os.killpg(started[0].process.pid, signal.SIGINT)
    assert started[0].end() == 0
    assert started[0].log().count("Job stopped") == 1
    assert "Traceback" not in started[0].log()


def test_what_watches_a_killed_trainer_ends_too(started: list[Training], tmp_path: Path) -> None:
    started.append(Training(tmp_path, "Training"))
    started[0].wait_at("Training")
    os.kill(started[0].process.pid, signal.SIGKILL)
    assert started[0].end() == -signal.SIGKILL


def test_it_is_asked_to_save_and_to_sample_at_the_end_of_a_step(started: list[Training], tmp_path: Path) -> None:
    training = Training(tmp_path, "Training - after 1", "Saving model", "Generating images - 0/1", steps=3)
    started.append(training)
    training.wait_at("Training - after 1")
    assert (training.ask("save").returncode, training.ask("sample").returncode) == (0, 0)
    training.go_on()
    training.wait_at("Saving model")
    until(lambda: "[stationmaster] saving: Saving model" in training.log(), "the phase")
    training.go_on()
    training.wait_at("Generating images - 0/1")
    assert (training.output / "model_000000002.safetensors").exists()
    assert (training.output / "optimizer.pt").read_bytes() == b"optimizer of 2"
    assert training.ask("save").returncode == 0, "the training goes on after these samples"
    training.go_on()
    training.wait_at("Saving model")
    training.go_on()
    training.wait_at("Generating images - 0/1")
    assert (training.output / "optimizer.pt").read_bytes() == b"optimizer of 3"
    refused = training.ask("save")
    assert (refused.returncode, "the last samples are being made" in refused.stdout) == (1, True)
    training.go_on()
    assert training.end() == 0
    assert "does not run" in training.ask("sample").stdout


def test_before_its_first_step_there_is_nothing_to_ask_for(started: list[Training], tmp_path: Path) -> None:
    started.append(Training(tmp_path, "Loading model"))
    started[0].wait_at("Loading model")
    refused = started[0].ask("save")
    assert (refused.returncode, refused.stdout) == (1, "error: the training has not begun (Loading model)\n")


def test_a_temporary_folder_is_short_enough_for_sockets(started: list[Training], tmp_path: Path) -> None:
    long = tmp_path / ("x" * 80)
    long.mkdir()
    for folder, used in ((long, Path("/tmp")), (Path("/dev/shm"), Path("/dev/shm"))):
        started.append(Training(tmp_path, "Loading model", environ={"TMPDIR": str(folder)}))
        started[-1].wait_at("Loading model")
        environ = Path(f"/proc/{started[-1].process.pid}/environ").read_bytes()
        assert f"TMPDIR={used}\0".encode() in environ
        os.killpg(started[-1].process.pid, signal.SIGKILL)


def test_a_second_try_knows_nothing_of_the_first(started: list[Training], tmp_path: Path) -> None:
    """Neither its request, nor its steps, nor a model that it was writing when it was killed."""
    first = Training(tmp_path, "Training - after 3", steps=9)
    started.append(first)
    first.wait_at("Training - after 3")
    assert first.ask("save").returncode == 0
    os.killpg(first.process.pid, signal.SIGKILL)
    first.process.wait()
    (tmp_path / "output" / "model_000000003.safetensors").write_bytes(b"\x40\0\0\0\0\0\0\0{")
    whole = tmp_path / "output" / "model_000000002.safetensors"
    whole.write_bytes(b'\x35\0\0\0\0\0\0\0{"w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}\0')
    first.log_file.unlink()
    second = Training(tmp_path, steps=4, start=2)
    started.append(second)
    assert second.end() == 0
    assert "removing model_000000003.safetensors" in second.log()
    assert whole.exists()
    assert not (tmp_path / "output" / "optimizer.pt").exists(), "it was not asked to save"
    assert {reading.step for reading in read(second.log())} <= {None, 2, 3, 4}


def test_steps_and_events_are_recorded_beside_trackside(started: list[Training], tmp_path: Path) -> None:
    database = tmp_path / "logs" / "aitk_db.db"
    training = Training(tmp_path, "Generating images - 0/1", steps=5, environ=environment(database))
    started.append(training)
    training.wait_at("Generating images - 0/1")
    until(lambda: is_recorded(database, "sampling_start", 5), "the start of sampling")
    training.go_on()
    assert training.end() == 0
    rows = steps_of(database)
    assert [(row["step"], row["loss"]) for row in rows] == [
        (step, pytest.approx(1.0 / (step + 1))) for step in (2, 3, 4, 5)
    ]
    assert [(row["timestamp"], row["step_time_seconds"]) for row in rows[1:]] == [
        (1000.0 + 2.5 * step, 2.5) for step in (2, 3, 4)
    ]
    assert kinds_and_steps(database)[-3:] == [("sampling_start", 5), ("sampling_end", 5), ("training_end", 5)]
    assert facts_of(database)["framework"] == "ai-toolkit"


@pytest.mark.parametrize("missing", ["trackside", "a folder to write to"])
def test_where_nothing_can_be_recorded_its_progress_is_told_all_the_same(
    started: list[Training], tmp_path: Path, missing: str
) -> None:
    environ = environment(tmp_path / "config.json" / "aitk_db.db")  # below a file
    if missing == "trackside":
        environ = {**environment(tmp_path / "aitk_db.db"), **without_trackside(tmp_path / "path")}
    started.append(Training(tmp_path, environ=environ))
    assert started[0].end() == 0
    log = started[0].log()
    assert "[stationmaster] step 4/4 loss" in log
    assert "no longer read" not in log
    assert not (tmp_path / "aitk_db.db").exists()


def test_locked_databases_are_read_later(started: list[Training], tmp_path: Path) -> None:
    training = Training(tmp_path, "Training - after 2", steps=5)
    started.append(training)
    training.wait_at("Training - after 2")
    until(lambda: "[stationmaster] training: Training - after 2" in training.log(), "the phase")
    with closing(sqlite3.connect(training.database, isolation_level=None)) as locked:
        locked.execute("BEGIN EXCLUSIVE")
        before = training.log()
        training.go_on()
        until(lambda: "step 3/5" in training.log(), "a step from the other database")
        assert "3/5" not in before
        locked.execute("COMMIT")
    assert training.end() == 0
    assert "step 5/5" in training.log()
    assert "no longer read" not in training.log()


def read(log: str) -> list[Reading]:
    """What Stationmaster reads from a log, fed line by line."""
    recipe = find("flux-lora@2").recipe
    reader = LogReader(framework=recipe.framework, patterns=user_patterns(recipe.log_patterns))
    return [reading for line in log.splitlines(keepends=True) for reading in reader.feed(line.encode())]


def _environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def _group_lives(group: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, found = stat.read_text().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue  # gone meanwhile
        if int(found) == group and state != "Z":
            return True
    return False
