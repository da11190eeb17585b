"""Trainings that go wrong in every way the demo recipe knows, watched by a real worker with scaled limits."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cli_runs import Commands, Home, wait_until
from local_world import write_pictures

THRESHOLDS = {
    "min_window": "3s",
    "patience_steps": 10,
    "patience_lines": 2,
    "near_end_eta": "0.5s",
    "near_end_progress": 1,
    "resume_span": "0.5s",
    "resume_window": "1s",
    "saving_limit": "4s",
    "collapse_hold": "2s",
    "trend_windows": 1,
    "sustain_windows": 1,
}
STEPS = {"steps": 3000, "seconds_per_step": 0.02, "save_every": 40, "sample_every": 3000}


def job(folder: Path, pictures: Path, name: str, *, grace_ms: int = 2000, **parameters: Any) -> Path:
    path = folder / f"{name}.yaml"
    monitoring = {
        "gracePeriod": grace_ms,
        "poll_interval": 0.5,
        "stallDetection": {"thresholds": THRESHOLDS},
        "reactions": {"nan_loss": "stop"},
    }
    asked = {"recipe": "tiny-lora@1", "dataset": str(pictures), "name": name, "id": name, "monitoring": monitoring}
    path.write_text(yaml.safe_dump({**asked, "parameters": {**STEPS, **parameters}}))
    return path


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """All of them at the same time under one worker: they mostly wait."""
    folder = tmp_path_factory.mktemp("watched")
    pictures = write_pictures(tmp_path_factory.mktemp("pictures"))
    with Commands() as commands, Home(folder, commands) as opened:
        for name, fault in (("hangs", "stall"), ("crawls", "slow"), ("saves", "hang_saving"), ("nans", "nan")):
            file = job(folder, pictures, name, fault=fault, fault_at=130)
            assert opened.run("train", str(file), "--yes").code == 0
        file = job(folder, pictures, "pauses", grace_ms=60_000, steps=900)
        assert opened.run("train", str(file), "--yes").code == 0
        yield opened


def ended(home: Home, name: str) -> dict[str, Any]:
    done = home.run("watch", name, "--json")
    answer: dict[str, Any] = json.loads(done.out)
    return answer


def kinds(answer: dict[str, Any]) -> list[str]:
    return [event["kind"] for event in answer["progressLog"]]


def test_a_run_that_comes_back_within_its_grace_goes_on_to_its_end(home: Home) -> None:
    wait_until(lambda: (home.job("pauses").progress.step or 0) > 120, what="step 120 of the run that pauses")
    (file,) = (home.path / "machines").glob("*-pauses-1/jobs/pauses/.trackside/training.pid")
    group = os.getpgid(int(file.read_text().split()[0]))
    os.killpg(group, signal.SIGSTOP)
    try:
        wait_until(lambda: "stall_flagged" in kinds(home.show("pauses")), what="the pause flagged as a stall")
    finally:
        os.killpg(group, signal.SIGCONT)
    answer = ended(home, "pauses")
    assert answer["outcome"] == "COMPLETED"
    assert "stall_cleared" in kinds(answer)
    assert "terminate" not in kinds(answer)


@pytest.mark.parametrize("name", ["hangs", "crawls", "saves"])
def test_a_stalled_run_is_told_given_its_grace_and_ended_with_its_checkpoint(home: Home, name: str) -> None:
    answer = ended(home, name)
    assert (answer["outcome"], answer["reason"]) == ("INCOMPLETE", "STALLED"), answer["explanation"]
    told = [kind for kind in kinds(answer) if kind in ("stall_flagged", "terminate", "model_safe", "outcome")]
    assert told == ["stall_flagged", "terminate", "model_safe", "outcome"]
    assert Path(answer["model"]).is_file()
    assert [rental["state"] for rental in answer["rentals"]] == ["GONE"]


def test_a_run_whose_loss_is_no_number_is_ended_where_that_is_asked_for(home: Home) -> None:
    answer = ended(home, "nans")
    assert (answer["outcome"], answer["reason"]) == ("INCOMPLETE", "ANOMALY")
    assert "nan_loss" in answer["explanation"]
