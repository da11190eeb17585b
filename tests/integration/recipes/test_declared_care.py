"""What a recipe declares beside its steps is done for whole jobs: cleanup, health, samples."""

from __future__ import annotations

from pathlib import Path

from stationmaster.model import Desired, Outcome
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted

CLEANUP = """\
cleanup:
  - {name: first, shell: "echo cleaned >>{{ parameters.note }}; exit 3", timeout: 20s}
  - {name: second, shell: "ls {{ output.dir }} >>{{ parameters.note }}", timeout: 20s}
"""


def test_the_cleanup_runs_once_after_a_training_that_failed_and_tells_what_went_wrong(tmp_path: Path) -> None:
    noted = tmp_path / "noted; $(touch broken)"
    with RecipeWorld(tmp_path, scripted(f"{MODEL}\nexit 9", more=CLEANUP)) as world:
        job_id = world.submit(parameters={"note": str(noted)})
        world.work_until_ended(job_id)
        job = world.station.jobs.view(job_id).job
        (told,) = world.told(job_id, "cleanup")
    assert job.outcome is Outcome.FAILED
    assert noted.read_text() == "cleaned\nmodel.safetensors\n"
    assert (told.payload["state"], told.payload["failed"]) == ("failed", ["first"])
    assert not list(tmp_path.rglob("broken"))


def test_a_cancelled_job_is_stopped_and_cleaned_up_before_its_machine_goes(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    train = "echo $$ >{{ parameters.note }}.pid; while :; do sleep 0.05; done"
    more = """\
    cleanup:
      - name: look
        shell: |
          kill -0 $(cat {{ parameters.note }}.pid) 2>/dev/null || echo ended >{{ parameters.note }}
    """
    with RecipeWorld(tmp_path, scripted(train, more=more)) as world:
        job_id = world.submit(parameters={"note": str(noted)})
        world.work_until(Path(f"{noted}.pid").exists, what="the training runs")
        world.station.jobs.desire(job_id, Desired.CANCEL)
        world.work_until_ended(job_id)
        job = world.station.jobs.view(job_id).job
    assert job.outcome is Outcome.CANCELLED
    assert noted.read_text() == "ended\n"


def test_a_cleanup_that_hangs_does_not_keep_the_machine(tmp_path: Path) -> None:
    more = "cleanup: [{name: hang, argv: [sleep, '1000'], timeout: 500ms}]\nstop: {grace: 200ms}\n"
    with RecipeWorld(tmp_path, scripted(more=more)) as world:
        job_id = world.submit()
        world.work_until_ended(job_id)
        assert world.station.jobs.view(job_id).job.outcome is Outcome.COMPLETED
        (told,) = world.told(job_id, "cleanup")
    assert (told.payload["state"], told.payload["failed"]) == ("failed", ["hang"])


def test_a_health_check_that_fails_is_an_alert_until_it_is_well_and_ends_nothing(tmp_path: Path) -> None:
    sick, go = tmp_path / "sick", tmp_path / "go"
    more = """\
    health:
      argv: [/bin/sh, -c, 'test ! -e "$1" || { echo the GPU fell off; exit 4; }', sh, "{{ parameters.note }}"]
      every: 1s
    """
    train = f"while [ ! -e {{{{ parameters.note }}}}.go ]; do sleep 0.05; done\n{MODEL}"
    go = Path(f"{sick}.go")
    with RecipeWorld(tmp_path, scripted(train, more=more)) as world:
        job_id = world.submit(parameters={"note": str(sick)})
        world.work_until(lambda: _running(world, job_id), what="the training runs")
        sick.touch()
        world.work_until(lambda: bool(world.told(job_id, "health_failed")), what="the failure is told")
        alerts = [alert for alert in world.alerts() if alert.kind == "health"]
        sick.unlink()
        world.work_until(lambda: bool(world.told(job_id, "health_well")), what="it is told that all is well")
        assert [alert for alert in world.alerts() if alert.kind == "health"] == []
        go.touch()
        world.work_until_ended(job_id)
        assert world.station.jobs.view(job_id).job.outcome is Outcome.COMPLETED
        assert len(world.told(job_id, "health_failed")) == 1
    (alert,) = alerts
    assert alert.message == "the health check failed with exit code 4: the GPU fell off; the training continues"


def _running(world: RecipeWorld, job_id: str) -> bool:
    return world.station.jobs.view(job_id).job.progress.active_step == "train"


def test_samples_are_made_where_the_trainer_left_none_and_come_home(tmp_path: Path) -> None:
    more = """\
    samples:
      pattern: output/samples/*.txt
      argv: [/bin/sh, -c, 'mkdir "$1"/samples; echo "$NAME" >"$1"/samples/one.txt; exit 3', sh, "{{ output.dir }}"]
      env: {NAME: "{{ job.name }}"}
    """
    with RecipeWorld(tmp_path, scripted(more=more)) as world:
        job_id = world.submit(name="it's; $(id)")
        world.work_until_ended(job_id)
        assert world.station.jobs.view(job_id).job.outcome is Outcome.COMPLETED, "a failed sample is no failed training"
    sample = tmp_path / "home" / "jobs" / job_id / "files" / "attempt-1" / "output" / "samples" / "one.txt"
    assert sample.read_text() == "it's; $(id)\n"


def test_a_cleanup_that_one_worker_began_is_awaited_by_the_next_and_not_repeated(tmp_path: Path) -> None:
    noted = tmp_path / "noted"
    more = """\
    cleanup:
      - name: slow
        shell: |
          echo begun >>{{ parameters.note }}
          while [ ! -e {{ parameters.note }}.go ]; do sleep 0.05; done
        timeout: 2m
    """
    with RecipeWorld(tmp_path, scripted(more=more)) as world:
        job_id = world.submit(parameters={"note": str(noted)})
        world.work_until(noted.exists, what="the cleanup runs")
        assert world.station.jobs.view(job_id).rentals[0].gone_at is None
        Path(f"{noted}.go").touch()
        world.work_until_ended(job_id)
        (told,) = world.told(job_id, "cleanup")
    assert told.payload["state"] == "done"
    assert noted.read_text() == "begun\n"
