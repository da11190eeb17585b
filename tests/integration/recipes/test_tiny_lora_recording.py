"""tiny-lora@1 beside trackside: its steps and events are recorded, and without trackside it trains the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from tests.support.jobs.recorded_runs import (
    environment,
    events_of,
    facts_of,
    kinds_and_steps,
    steps_of,
    without_trackside,
)
from tests.support.jobs.tiny_lora_runs import train, write_images


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "logs" / "aitk_db.db"


def test_every_step_is_recorded_with_what_it_learned(dataset: Path, database: Path, tmp_path: Path) -> None:
    run = train(dataset, tmp_path / "output", "--sample-every=30", **environment(database))
    assert run.returncode == 0, run.stdout
    steps = steps_of(database)
    assert [row["step"] for row in steps] == list(range(1, 61))
    (first,) = re.findall(r"\| 0/60 \[\S+ \S+ lr: 1\.0e-02 loss: (\S+)\]", run.stdout)
    assert steps[0]["loss"] == pytest.approx(float(first), rel=1e-3)
    assert steps[-1]["loss"] < steps[0]["loss"] / 2
    assert {(row["learning_rate"], row["batch_size"]) for row in steps} == {(0.01, 4)}
    assert all(row["gradient_norm"] > 0 for row in steps)
    assert all(row["step_time_seconds"] > 0 for row in steps[1:])
    assert facts_of(database) == {"framework": "tiny-lora", "total_steps": "60"}


def test_its_saves_samples_and_pictures_are_events(dataset: Path, database: Path, tmp_path: Path) -> None:
    train(dataset, tmp_path / "output", "--sample-every=30", **environment(database))
    assert kinds_and_steps(database, without=("image",)) == [
        *(("sampling_start", 0), ("sampling_end", 0), ("training_start", 0)),
        *(("save_start", 20), ("save_end", 20), ("sampling_start", 30), ("sampling_end", 30)),
        *(("save_start", 40), ("save_end", 40), ("save_start", 60), ("save_end", 60)),
        *(("sampling_start", 60), ("sampling_end", 60), ("training_end", 60)),
    ]
    pictures = [event.details["path"] for event in events_of(database) if event.kind == "image"]
    assert sorted(pictures) == sorted(str(path) for path in (tmp_path / "output" / "samples").glob("*.png"))
    assert events_of(database)[0].details["config"]["rank"] == 8


def test_memory_that_runs_out_is_an_event_before_the_end(dataset: Path, database: Path, tmp_path: Path) -> None:
    run = train(dataset, tmp_path / "output", "--fault=oom", "--fault-at=5", **environment(database))
    assert run.returncode == 1
    assert kinds_and_steps(database)[-2:] == [("oom_error", 4), ("training_end", 4)]
    assert len(steps_of(database)) == 4


def test_a_loss_that_is_no_number_is_recorded_as_none(dataset: Path, database: Path, tmp_path: Path) -> None:
    train(dataset, tmp_path / "output", "--fault=nan", "--fault-at=58", **environment(database))
    assert [row["loss"] is None for row in steps_of(database)[-4:]] == [False, True, True, True]


@pytest.mark.parametrize("missing", ["trackside", "a folder to write to"])
def test_where_nothing_can_be_recorded_it_trains_the_same(
    dataset: Path, tmp_path: Path, database: Path, missing: str
) -> None:
    plain = train(dataset, tmp_path / "plain")
    if missing == "trackside":
        environ = {**environment(database), **without_trackside(tmp_path / "path")}
    else:
        (tmp_path / "file").write_text("")
        environ = environment(tmp_path / "file" / "aitk_db.db")
    run = train(dataset, tmp_path / "output", **environ)
    assert (run.returncode, plain.returncode) == (0, 0), run.stdout
    assert not database.exists()
    first, second = (load_file(tmp_path / name / "demo.safetensors") for name in ("plain", "output"))
    assert all((first[name] == second[name]).all() for name in first)
