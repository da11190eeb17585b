"""New code meets running jobs, and old code meets jobs that new code has moved on."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from stationmaster.model import DatasetRef, Outcome, State
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.chaos.specs import a_job, a_picture_dataset
from tests.support.jobs.newer_code import HOLD, NEW_STATE, write_newer_code
from tests.support.waiting import until

_PATIENCE_SECONDS = 150.0
QUICK = {
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "500ms",
    "STATIONMASTER_MONITORING__WATCH_INTERVAL": "500ms",
    "STATIONMASTER_WORKER__SWEEP": "1s",
}


@pytest.fixture
def newer_code(tmp_path: Path) -> Path:
    return write_newer_code(tmp_path / "newer")


@pytest.fixture
def dataset(tmp_path: Path) -> DatasetRef:
    return a_picture_dataset(tmp_path / "dataset")


class Home:
    """One installation, looked at without the code of either version where a state may be unknown."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self._file = folder / "stationmaster.db"
        self.store = Store(Database(f"sqlite:///{self._file}"))

    def submit(self, job_id: str, dataset: DatasetRef, *, seconds_per_step: float) -> None:
        wanted = {"steps": 20, "seconds_per_step": seconds_per_step, "save_every": 20, "sample_every": 20}
        parameters = resolve(find("tiny-lora@1").recipe, wanted)
        spec = a_job(
            job_id, self.folder, recipe="tiny-lora@1", provider="loopback", dataset=dataset, parameters=parameters
        )
        self.store.jobs.submit(spec)

    def state(self, job_id: str) -> str:
        with closing(sqlite3.connect(self._file, timeout=150)) as connection:
            return str(connection.execute("SELECT state FROM jobs WHERE id = ?", (job_id,)).fetchone()[0])

    def until(self, condition: Callable[[], object], what: str) -> None:
        until(condition, what, story=lambda: self.log()[-3000:])

    def log(self) -> str:
        return (self.folder / "test.log").read_text(errors="replace")

    @contextmanager
    def worker(self, code: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
        """`stationmaster worker` of this version, or of the one in `code`; ended with the block."""
        environment = {**os.environ, **QUICK, "STATIONMASTER_HOME": str(self.folder)}
        if code is not None:
            environment["PYTHONPATH"] = str(code)
        with (self.folder / "test.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "stationmaster", "worker"], env=environment, stdout=log, stderr=log
            )
        try:
            yield process
        finally:
            process.terminate()
            process.wait(_PATIENCE_SECONDS)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home.store.close()


def test_a_deployment_and_a_step_back_leave_a_running_job_whole(
    home: Home, newer_code: Path, dataset: DatasetRef
) -> None:
    """New code takes over from old code that was killed; old code comes back, and meets a state unknown to it."""
    (home.folder / HOLD).touch()
    home.submit("begun", dataset, seconds_per_step=0.1)
    with home.worker() as old:
        home.until(lambda: home.state("begun") == State.EXECUTING, "a running training")
        old.kill()
    with home.worker(newer_code):
        home.until(lambda: home.state("begun") == NEW_STATE, "the state that only new code has")
    home.submit("other", dataset, seconds_per_step=0.0)
    with home.worker() as old:
        home.until(lambda: home.state("other") == State.ENDED, "the other job's end")
        home.until(lambda: [alert.kind for alert in home.store.alerts.open("begun")], "an alert")
        assert old.poll() is None
    _left_alone(home)
    (home.folder / HOLD).unlink()
    with home.worker(newer_code):
        home.until(lambda: home.state("begun") == State.ENDED, "the job's end")
    job = home.store.jobs.get("begun")
    assert (job.outcome, job.attempt) == (Outcome.COMPLETED, 1)
    moves = [event.payload["to"] for event in home.store.events.of_job("begun") if event.kind == "state"]
    assert moves == [
        "PROVISIONING", "TRANSFERRING_DATA", "EXECUTING", "FETCHING_RESULTS", NEW_STATE, "FINALIZING", "RELEASING",
        "ENDED",
    ]  # fmt: skip


def _left_alone(home: Home) -> None:
    assert [alert.kind for alert in home.store.alerts.open("begun")] == ["unknown_state"]
    assert home.store.jobs.get("other").outcome is Outcome.COMPLETED
    machine = next(rental.provider_id for rental in home.store.rentals.of_job("begun"))
    assert (home.folder / "machines" / str(machine)).is_dir(), "its machine was taken away"
    assert {job.id: str(job.state) for job in home.store.jobs.listed(with_ended=True)} == {
        "other": "ENDED",
        "begun": NEW_STATE,
    }
