"""Whole jobs whose steps fail: tried again where that can help, and explained by the error that ended them."""

from __future__ import annotations

import json
from pathlib import Path

from stationmaster.model import Job, Outcome, Reason
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted

#: Writes half of what it should and is killed; a further try is told where that is.
HALVES = """
if [ $# = 1 ]; then
  echo "goes on from $1"
else
  mkdir -p {{ output.dir }}/cat-state
  echo '{}' >{{ output.dir }}/cat-state/x.json
  kill -9 $$
fi
"""


def ended(tmp_path: Path, recipe: str) -> tuple[Job, str]:
    with RecipeWorld(tmp_path, recipe) as world:
        job_id = world.submit()
        world.work_until_ended(job_id)
        log = b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id)).decode()
        (told,) = world.told(job_id, "outcome")
        job = world.station.jobs.view(job_id).job
    assert told.payload["explanation"] == job.explanation
    return job, log


def test_a_training_that_makes_a_mistake_is_tried_once_and_says_which(tmp_path: Path) -> None:
    train = "echo tried\npython3 -c 'raise AssertionError(\"the rank must be even\")'"
    job, log = ended(tmp_path, scripted(train, step="    tries: 3\n    backoff: [1h]\n"))
    assert (job.outcome, job.reason) == (Outcome.FAILED, Reason.STEP_FAILED)
    quote = "AssertionError: the rank must be even"
    assert job.explanation == f"step train failed with exit code 1 (try 1): {quote}; not retried, it would fail again"
    assert log.count("tried\n") == 1


def test_a_bootstrap_without_a_network_is_tried_again_and_explained(tmp_path: Path) -> None:
    said = "fatal: unable to access 'https://host.example/x/': Could not resolve host: host.example"
    fetch = {"name": "fetch", "argv": ["/bin/sh", "-c", 'echo "$0" >&2; exit 128', said], "tries": 3, "backoff": [0.05]}
    job, log = ended(tmp_path, scripted(more=f"bootstrap: [{json.dumps(fetch)}]\n"))
    assert job.explanation == f"step fetch failed with exit code 128 (try 3): {said}"
    assert log.count(said) == 3


def test_a_killed_training_goes_on_from_what_it_left(tmp_path: Path) -> None:
    head = scripted(more='resume: {again: {pattern: "output/*-state/x.json", argv: ["{{ again.folder }}"]}}\n')
    argv = ["/bin/sh", "-ec", f"{HALVES}{MODEL}", "sh"]
    train = {"name": "train", "training": True, "argv": argv, "tries": 2, "backoff": [0.05]}
    job, log = ended(tmp_path, f"{head.rpartition('steps:')[0]}steps: [{json.dumps(train)}]\n")
    assert job.outcome is Outcome.COMPLETED, job.explanation
    assert "trackside: goes on from output/cat-state/x.json\n" in log
    assert log.rstrip().endswith("/output/cat-state")
