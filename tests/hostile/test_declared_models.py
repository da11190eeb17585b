"""Whatever a machine calls a checkpoint: only declared files that open as what they are become the model."""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest

from stationmaster.delivery.safetensors_header import open_safetensors
from stationmaster.model import Outcome, State
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.lying_machine import corrupt

PICKLE = pickle.dumps({"weights": [1.0] * 100})


@pytest.fixture
def station(tmp_path: Path, url: str, forge: StormForge, hold: Hold) -> StormStation:
    return hold(StormStation(tmp_path / "home", url, forge))


def test_a_pickle_and_tricks_with_names_never_become_the_model(tmp_path: Path, station: StormStation) -> None:
    spec = storm_job("job-1", a_tiny_dataset(tmp_path / "dataset"), journal=station.journal, steps=10)
    station.keep_training()
    station.submit(spec)
    station.start("worker")
    station.until(lambda: station.store.checkpoints.of_job("job-1"), "a first checkpoint")
    (machine,) = station.alive()
    names = ["output/pytorch_model.bin", "output/a\x1b[2Jb.safetensors", "output/zz.safetensors", "../out.safetensors"]
    files = [_said_to_be_there(name) for name in names]
    lies = {verb: {"add": {"outputs": files}} for verb in ("status", "inventory")}
    folder = corrupt(tmp_path / "simulator" / "machines" / str(machine["id"]), lies)
    for name in names[:3]:
        (folder / name).write_bytes(PICKLE)
    station.let_finish()
    station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
    ended = station.job("job-1")
    assert ended.outcome is Outcome.COMPLETED
    assert open_safetensors(Path(ended.model.address or "")).tensors == 1
    assert ended.model.file is not None
    assert ended.model.file.name == "job-1.safetensors"
    kinds = [event.kind for event in station.store.events.of_job("job-1")]
    assert (kinds.count("files_refused"), kinds.count("model_broken")) == (1, 1)
    known = {one.path for one in station.store.checkpoints.of_job("job-1")}
    assert known.isdisjoint({names[0], names[1], names[3]})
    (model,) = station.store.models.listed()
    assert model.file_name == "job-1.safetensors"
    station.check()


def _said_to_be_there(path: str) -> dict[str, Any]:
    sha256 = hashlib.sha256(PICKLE).hexdigest()
    return {"path": path, "kind": "checkpoint", "size": len(PICKLE), "mtime": 9e9, "sha256": sha256}
