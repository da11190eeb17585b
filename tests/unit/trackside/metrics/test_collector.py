"""What a training records through `Run` is in its database, and nothing that it passes can raise."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from trackside import Run
from trackside.collector import is_out_of_memory


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    for name in ("RANK", "LOCAL_RANK", "TRACKSIDE_DATABASE", "TRACKSIDE_JOB", "TRACKSIDE_RECORDER"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path / "aitk_db.db"
    assert list(tmp_path.glob("*.journals")) == [], "a run that was closed leaves no journal"


def opened(database: Path, **options: Any) -> Run:
    return Run("job", str(database), **{"sample_seconds": 0.0, **options})


def rows(database: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(database)) as connection:
        return connection.execute(query).fetchall()


def step_times(database: Path) -> list[float | None]:
    return [time for (time,) in rows(database, "SELECT step_time_seconds FROM StepMetric ORDER BY id")]


def test_a_step_is_recorded_with_all_its_values(database: Path) -> None:
    with opened(database) as run:
        run.step(1, loss=0.5, lr=1e-4, grad_norm=2.0, batch_size=4, at=100.0, epoch=0.25)
    assert rows(database, "SELECT * FROM StepMetric") == [(1, "job", 1, 100.0, 0.5, 4, 2.0, 1e-4, None)]
    assert rows(database, "SELECT step, timestamp, name, value FROM StepValue") == [(1, 100.0, "epoch", 0.25)]


def test_values_after_a_step_are_recorded_without_another_row_for_it(database: Path) -> None:
    with opened(database) as run:
        run.step(1, loss=0.5, at=100.0)
        run.values(1, at=101.0, val_loss=0.25, precision=float("nan"))
    assert rows(database, "SELECT step, timestamp, name, value FROM StepValue") == [(1, 101.0, "val_loss", 0.25)]
    assert rows(database, "SELECT count(*) FROM StepMetric") == [(1,)]


def test_a_steps_time_is_its_own_not_the_intervals(database: Path) -> None:
    run = opened(database)
    for step, at in ((1, 100.0), (2, 100.5), (12, 105.5), (13, 104.0), (1, 110.0), (2, 111.0)):
        run.step(step, at=at)
    run.close()
    # The first has none; ten steps share five seconds; a clock that went back and a resumed training give none.
    assert step_times(database) == [None, 0.5, 0.5, None, None, 1.0]


def test_sampling_and_saving_are_no_steps_time(database: Path) -> None:
    run = opened(database)
    run.step(1, at=100.0)
    run.event("save_start", at=100.5)
    run.event("sampling_start", at=101.0)
    run.event("sampling_end", at=104.0)
    run.event("save_end", at=105.0)
    run.step(2, at=109.0)
    run.step(3, at=110.0)
    run.close()
    first, second, third = step_times(database)
    assert first is None
    assert second == pytest.approx(9.0 - 3.0 - 4.5)
    assert third == pytest.approx(1.0)


def test_a_given_step_time_counts(database: Path) -> None:
    run = opened(database)
    run.step(1, at=100.0)
    run.step(2, at=109.0, step_time=0.125)
    run.close()
    assert step_times(database) == [None, 0.125]


def test_an_event_has_its_step_the_config_and_a_sample(database: Path) -> None:
    with opened(database, config={"train": {"batch_size": 4}}) as run:
        run.step(7)
        run.event("batch_size_adjustment", old_batch_size=4, new_batch_size=2)
        run.image(Path("samples/a.jpg"))
        run.image("samples/b.jpg", step=9)
    found = rows(database, "SELECT event_type, details FROM TrainingEvent ORDER BY id")
    config = {"config": {"train": {"batch_size": 4}}}
    assert [(kind, json.loads(details)) for kind, details in found] == [
        ("training_start", config),
        ("batch_size_adjustment", {"old_batch_size": 4, "new_batch_size": 2, "step": 7, **config}),
        ("image", {"path": "samples/a.jpg", "step": 7, **config}),
        ("image", {"path": "samples/b.jpg", "step": 9, **config}),
        ("training_end", {"step": 7, **config}),
    ]
    joined = "SELECT total_memory_gb > 0 FROM TrainingEvent JOIN MetricsSample m ON m.id = memory_snapshot_id"
    assert rows(database, joined) == [(1,)] * 5


class OutOfMemoryError(RuntimeError):
    """Named as PyTorch names it."""


@pytest.mark.parametrize(
    ("problem", "kinds"),
    [
        (OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), ["oom_error"]),
        (MemoryError(), ["oom_error"]),
        (RuntimeError("MPS backend out of memory"), ["oom_error"]),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 8 bytes."), ["oom_error"]),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"), ["oom_error"]),
        (RuntimeError("the bedroom pictures are gone"), []),
        (KeyboardInterrupt(), []),
    ],
)
def test_an_exception_ends_the_run_and_goes_on(database: Path, problem: BaseException, kinds: list[str]) -> None:
    with pytest.raises(type(problem)), opened(database):
        raise problem
    found = [kind for (kind,) in rows(database, "SELECT event_type FROM TrainingEvent ORDER BY id")]
    assert found == ["training_start", *kinds, "training_end"]
    assert is_out_of_memory(problem) == bool(kinds)


def test_only_rank_0_records_steps_and_all_record_events(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = opened(database)
    monkeypatch.setenv("RANK", "1")
    second = opened(database)
    first.step(1)
    second.step(1)
    second.event("oom_error")
    first.close()
    second.close()
    assert rows(database, "SELECT count(*) FROM StepMetric") == [(1,)]
    assert rows(database, "SELECT event_type FROM TrainingEvent") == [("oom_error",)]


class Tensor:
    """Converts itself, as tensors do."""

    def __float__(self) -> float:
        return 0.75

    def __index__(self) -> int:
        return 3


@pytest.mark.parametrize(
    ("values", "recorded"),
    [
        ({"loss": Tensor(), "batch_size": Tensor()}, (1, 0.75, None, 3)),
        ({"loss": "a lot", "lr": 0.5}, (1, None, 0.5, None)),
        ({"loss": 0.5, "batch_size": 2**80}, (1, 0.5, None, None)),
        ({"loss": object(), "batch_size": None}, (1, None, None, None)),
        ({"loss": 10**400}, (1, None, None, None)),
    ],
)
def test_a_value_that_is_no_number_is_left_out(
    database: Path, values: dict[str, Any], recorded: tuple[Any, ...]
) -> None:
    run = opened(database)
    run.step(1, **values)
    run.step(2, loss=0.25, note="not a number", fine=1)  # type: ignore[arg-type]
    run.close()
    found = rows(database, "SELECT step, loss, learning_rate, batch_size FROM StepMetric ORDER BY id")
    assert found == [recorded, (2, 0.25, None, None)]
    assert rows(database, "SELECT name, value FROM StepValue") == [("fine", 1.0)]


def test_nothing_of_a_wrong_type_raises(database: Path) -> None:
    run = opened(database)
    run.step("seven")  # type: ignore[arg-type]
    run.step(None)  # type: ignore[arg-type]
    run.event("odd", thing=object(), at=None)
    run.info(key=object())
    run.step(7)
    run.close()
    run.close()
    run.step(8)
    run.event("late")
    assert rows(database, "SELECT event_type FROM TrainingEvent") == [("odd",)]
    assert rows(database, "SELECT step FROM StepMetric") == [(7,)]


def test_facts_of_the_run_are_recorded(database: Path) -> None:
    run = opened(database, framework="my-trainer", total_steps=100)
    run.info(dataset_images=12)
    run.close()
    assert rows(database, "SELECT key, value FROM RunInfo ORDER BY key") == [
        ("dataset_images", "12"),
        ("framework", "my-trainer"),
        ("total_steps", "100"),
    ]


def test_job_and_database_come_from_the_environment(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACKSIDE_DATABASE", str(database))
    monkeypatch.setenv("TRACKSIDE_JOB", "named")
    monkeypatch.setenv("TRACKSIDE_RECORDER", "1")
    with Run() as run:
        run.step(1)
    assert (run.job_id, run.database) == ("named", str(database))
    assert rows(database, "SELECT job_id FROM StepMetric") == [("named",)]
    assert rows(database, "SELECT count(*) FROM MetricsSample") == [(2,)], "the recorder samples, Run only at events"


def test_a_job_without_monitoring_records_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TRACKSIDE_DISABLED", "1")
    with Run(total_steps=3) as run:
        run.step(1, loss=0.5)
        run.values(1, accuracy=0.5)
    assert list(tmp_path.iterdir()) == []


def test_a_run_without_a_recorder_samples(database: Path) -> None:
    run = opened(database, sample_seconds=60.0)
    run.close()
    assert rows(database, "SELECT count(*) > 0 FROM MetricsSample") == [(1,)]
    assert {"platform", "cpu_cores"} <= {key for (key,) in rows(database, "SELECT key FROM RunInfo")}
