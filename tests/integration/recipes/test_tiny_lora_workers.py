"""tiny-lora@1 with worker processes, a moving average and too large a learning rate: all of it for real."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.support.jobs.recorded_runs import environment, steps_of
from tests.support.jobs.tiny_lora_runs import LiveRun, train, write_images
from tests.support.machines.own_hosts import is_alive
from tests.support.waiting import until

HUNGRY = ("--workers=2", "--worker-memory-mb=8", "--model-memory-mb=8", "--picture-memory-mb=1.5")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_images(tmp_path_factory.mktemp("data") / "images")


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def left_in_shared_memory(workers: list[int]) -> list[Path]:
    return [path for pid in workers for path in Path("/dev/shm").glob(f"tiny-lora-{pid}-*")]


def test_memory_and_workers_change_nothing_in_what_is_learnt(dataset: Path, tmp_path: Path) -> None:
    plain, hungry = (train(dataset, tmp_path / name, *more) for name, more in (("plain", ()), ("hungry", HUNGRY)))
    assert (plain.returncode, hungry.returncode) == (0, 0), hungry.stdout
    first, second = (load_file(tmp_path / name / "demo.safetensors") for name in ("plain", "hungry"))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_a_resumed_average_is_that_of_an_uninterrupted_run(dataset: Path, tmp_path: Path) -> None:
    plain, whole = tmp_path / "plain", tmp_path / "whole"
    assert train(dataset, plain).returncode == train(dataset, whole, "--ema").returncode == 0
    train(dataset, tmp_path / "again", "--ema", f"--resume={whole / 'demo_000000020.safetensors'}")
    live, average, again = (load_file(folder / "demo.safetensors") for folder in (plain, whole, tmp_path / "again"))
    assert all(np.array_equal(average[name], again[name]) for name in average)
    assert not np.array_equal(live["lora_B.weight"], average["lora_B.weight"])


@pytest.mark.parametrize(("number", "said"), [(signal.SIGKILL, "Killed"), (signal.SIGBUS, "Bus error")])
def test_a_worker_that_is_killed_ends_the_training_in_the_words_of_torch(
    dataset: Path, tmp_path: Path, number: signal.Signals, said: str
) -> None:
    with LiveRun(dataset, tmp_path / "output", "--workers=2", "--steps=100000", "--seconds-per-step=0.01") as run:
        workers = run.wait_until(lambda: len(found := children(run.process.pid)) == 2 and found) or []
        worker = workers[0]
        os.kill(worker, number)
        assert run.ended() == 1
    assert left_in_shared_memory(workers) == []
    assert f"RuntimeError: DataLoader worker (pid {worker}) is killed by signal: {said}." in run.log()


def test_a_killed_training_leaves_no_worker(dataset: Path, tmp_path: Path) -> None:
    with LiveRun(dataset, tmp_path / "output", "--workers=2", "--steps=100000", "--seconds-per-step=0.01") as run:
        workers = run.wait_until(lambda: len(found := children(run.process.pid)) == 2 and found) or []
        run.wait_until(lambda: re.search(r"demo: .* [1-9]\d*/100000 ", run.log()))
        run.process.kill()
    assert workers
    until(lambda: not any(is_alive(pid) for pid in workers), "the workers' end")
    assert left_in_shared_memory(workers) == []


def test_a_training_that_is_stopped_frees_its_shared_memory(dataset: Path, tmp_path: Path) -> None:
    with LiveRun(dataset, tmp_path / "output", "--workers=2", "--steps=100000", "--seconds-per-step=0.01") as run:
        workers = run.wait_until(lambda: len(found := children(run.process.pid)) == 2 and found) or []
        run.wait_until(lambda: re.search(r"demo: .* [1-9]\d*/100000 ", run.log()))
        run.process.terminate()
        assert run.ended() == 143
    assert left_in_shared_memory(workers) == []


def test_too_large_a_learning_rate_ends_in_nan_and_half_of_it_learns(dataset: Path, tmp_path: Path) -> None:
    database = tmp_path / "logs" / "aitk_db.db"
    high = train(dataset, tmp_path / "high", "--optimizer=sgd", "--learning-rate=6", **environment(database))
    half = train(dataset, tmp_path / "half", "--optimizer=sgd", "--learning-rate=3")
    assert "loss is nan\n" in high.stdout
    assert "loss is nan\n" not in half.stdout
    steps = steps_of(database)
    norms = [row["gradient_norm"] for row in steps if row["gradient_norm"] is not None]
    assert max(norms) > 10 * norms[0], "the gradient grew before the loss was no number"
    assert [row["loss"] for row in steps[-3:]] == [None, None, None]
