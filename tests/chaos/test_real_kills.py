"""SIGKILL to real processes at seeded moments: workers in every state, trackside's supervisor, its shims."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stationmaster.model import DatasetRef, State
from tests.support.chaos.loopback import STATES, LoopbackStation, WorkerForge
from tests.support.chaos.specs import a_picture_dataset


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> DatasetRef:
    return a_picture_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3))])
def test_a_training_survives_ten_kills(seed: int, tmp_path: Path, forge: WorkerForge, dataset: DatasetRef) -> None:
    """One worker after the other dies, each in the next state; before the one in EXECUTING, trackside's processes do.

    Before, because they live only as long as the training, which does not wait for another worker to start.
    """
    randomness = random.Random(seed)
    station = LoopbackStation(tmp_path / "home", dataset, forge)
    try:
        for state in STATES:
            if state is State.EXECUTING:
                station.kill_helpers(randomness)
            station.kill_worker_in(state, randomness)
        station.finish()
        station.check()
        assert station.kills.total() >= 9, station.kills
        assert {state for _, state in station.kills} == {state.value for state in STATES}
    finally:
        station.close()
