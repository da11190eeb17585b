"""What a training finds in its environment: where its metrics go, and a `trackside` that its Python can import."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.trackside_bench import Bench, bench, interpreters, step

NAMES = ("TRACKSIDE_DATABASE", "TRACKSIDE_JOB", "TRACKSIDE_LOG", "TRACKSIDE_RECORDER", "PYTHONPATH")
SHOW = f"import json, os; print(json.dumps({{name: os.environ.get(name) for name in {NAMES!r}}}))"
FIND = "import trackside.metrics.schema as found; print(found.__file__)"


def python(script: str, *, program: str = sys.executable, **more: Any) -> dict[str, Any]:
    return {"name": "train", "argv": [program, "-c", script], "training": True, **more}


def shown(job: Bench) -> Any:
    job.start()
    job.until_finished()
    return json.loads(job.text().splitlines()[-1])


@pytest.fixture
def job(job: Bench) -> Bench:
    job.environment.pop("PYTHONPATH", None)
    return job


def test_a_training_finds_its_database_job_and_log(job: Bench) -> None:
    job.plan(python(SHOW))
    found = shown(job)
    assert found["TRACKSIDE_DATABASE"] == str(job.root / "logs" / "aitk_db.db")
    assert (found["TRACKSIDE_JOB"], found["TRACKSIDE_RECORDER"]) == ("j", "1")
    assert found["TRACKSIDE_LOG"] == str(job.own / "steps" / "0.1" / "log")


@pytest.mark.parametrize("program", interpreters())
def test_every_python_of_a_training_can_import_trackside(tmp_path: Path, pyz: Path, program: str) -> None:
    """The archive that home sends carries code compiled for one version only."""
    with bench(tmp_path / "job", pyz=pyz, is_forked=True) as job:
        job.environment["PYTHONPATH"] = "/there/before"
        job.plan(python(FIND, program=program), step("after", "echo done"))
        job.start()
        assert job.until_finished()["finished"]["result"] == "done", job.text()
        found = Path(job.text().splitlines()[0])
        folder = found.parents[2]
        assert folder.parent == job.own
        assert [path.name for path in folder.iterdir()] == ["trackside"]


def test_an_installed_package_is_found_without_its_neighbours(tmp_path: Path) -> None:
    with bench(tmp_path / "job", pyz=None) as job:
        job.plan(python(FIND + "; import os; print(os.environ['PYTHONPATH'])", env={"PYTHONNOUSERSITE": "1"}))
        job.start()
        assert job.until_finished()["finished"]["result"] == "done", job.text()
        found, python_path = job.text().splitlines()
        folder = Path(python_path.split(os.pathsep)[0])
        assert Path(found).is_relative_to(folder)
        assert [path.name for path in folder.iterdir()] == ["trackside"]


def test_the_python_path_that_was_there_is_kept_behind_ours(job: Bench) -> None:
    job.environment["PYTHONPATH"] = "/machine"
    job.plan(python(SHOW))
    assert shown(job)["PYTHONPATH"].split(os.pathsep)[1:] == ["/machine"]


def test_the_plan_s_own_values_win_and_its_python_path_is_kept(job: Bench) -> None:
    job.environment["PYTHONPATH"] = "/machine"
    given = {"TRACKSIDE_DATABASE": "/elsewhere/db", "TRACKSIDE_JOB": "mine", "PYTHONPATH": "/plan:/more"}
    job.plan(python(SHOW, env=given))
    found = shown(job)
    assert (found["TRACKSIDE_DATABASE"], found["TRACKSIDE_JOB"]) == ("/elsewhere/db", "mine")
    assert found["PYTHONPATH"].split(os.pathsep)[1:] == ["/plan", "/more"]


def test_a_step_that_is_no_training_gets_nothing(job: Bench) -> None:
    job.plan(python(SHOW, training=False))
    assert shown(job) == dict.fromkeys(NAMES)


def test_a_script_that_records_runs_where_monitoring_is_disabled_and_records_nothing(job: Bench) -> None:
    recording = "from trackside import Run\nwith Run() as run:\n    run.step(1, loss=0.5)\n" + SHOW
    job.plan(python(recording), monitoring={"enabled": False})
    found = shown(job)
    assert found.pop("PYTHONPATH")
    assert found == dict.fromkeys(NAMES[:-1])
    assert list(job.root.rglob("*.db*")) == []


def test_a_training_starts_where_trackside_cannot_be_unpacked(tmp_path: Path, pyz: Path) -> None:
    with bench(tmp_path / "job", pyz=pyz, is_forked=True) as job:
        job.environment.pop("PYTHONPATH", None)
        job.plan(python(SHOW))
        seen = (job.root / "trackside.pyz").stat()
        job.own.mkdir()
        (job.own / f"code-{seen.st_size:x}-{seen.st_mtime_ns:x}").touch()  # a file where the folder would be
        found = shown(job)
        assert (found["PYTHONPATH"], found["TRACKSIDE_JOB"]) == (None, "j")
