"""The analysis of language models: a GPU that waits for rows, and rows that are short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.configs.parameters import ParameterConfig
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Health, Recommendation, Report, Severity
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.series.table import Table, table_from_json

SECONDS = 120
CONTEXT = 1_024


def run_of_text(
    *,
    busy_percent: list[float],
    tokens_per_row: int = 300,
    given: dict[str, object] | None = None,
    resumed: bool = False,
    loads: Mapping[str, float] | None = None,
) -> RecordedRun:
    """A step and a sample in each second; `resumed`: the counts of steps and tokens begin anew halfway."""
    recipe = find("llm-lora@2").recipe
    parameters = resolve(recipe, {"batch_size": 1, "packing": False, "steps": SECONDS, **(given or {})})
    count = len(busy_percent)
    numbers = [1 + number % (count // 2) if resumed else 1 + number for number in range(count)]
    times = [1_000.0 + number for number in range(count)]
    batch = int(parameters["batch_size"])
    tables = [
        table("StepMetric", step=numbers, timestamp=times, loss=[2.0] * count, batch_size=[batch] * count),
        table(
            "StepValue",
            step=numbers,
            timestamp=times,
            name=["num_tokens"] * count,
            value=[float(number * tokens_per_row * batch) for number in numbers],
        ),
        table(
            "GpuSample",
            timestamp=times,
            gpu_index=[0] * count,
            memory_used_gb=[3.0] * count,
            memory_total_gb=[140.0] * count,
            utilization_percent=busy_percent,
        ),
        table(
            "TrainingEvent",
            timestamp=[999.5, times[-1] + 1],
            event_type=["training_start", "training_end"],
            details=["{}", "{}"],
        ),
    ]
    if loads:
        tables.append(
            table(
                "ProcessSample",
                timestamp=times * len(loads),
                pid=[7] * count * len(loads),
                role=[role for role in loads for _ in times],
                cpu_percent=[load for load in loads.values() for _ in times],
                memory_gb=[1.0] * count * len(loads),
            )
        )
    return RecordedRun(
        job_id="words",
        tables={each.name: each for each in tables},
        info={
            "platform": "discrete",
            "exit_code": "0",
            "total_steps": str(SECONDS),
            "price_per_hour_usd": "3.6",
            "cpu_cores": "16",
            "context_tokens": str(CONTEXT),
        },
        config=ParameterConfig(recipe=recipe, parameters=parameters),
    )


def table(which: str, /, **columns: Sequence[object]) -> Table:
    made = table_from_json(which, {"id": list(range(len(columns["timestamp"]))), **columns})
    assert made is not None
    return made


def waiting(share: float) -> list[float]:
    """Samples of a GPU of which this share waits; the busiest of the rest is 60 % busy."""
    idle = round(SECONDS * share)
    return [4.0] * idle + [60.0] * (SECONDS - idle)


def advice_of(report: Report) -> dict[Lever, Recommendation]:
    return {each.lever: each for each in report.recommendations if each.severity is Severity.WARNING}


def test_a_starved_training_gets_its_idle_share_its_cost_and_all_that_would_help() -> None:
    report = analyse(run_of_text(busy_percent=waiting(1.0)))
    found = advice_of(report)
    assert list(found) == [Lever.WORKERS, Lever.PACKING, Lever.BATCH_SIZE], "what the data proves to be slow is first"
    workers = found[Lever.WORKERS]
    assert "100 %" in workers.title
    assert "$0.12 at $3.60 per hour" in workers.impact
    assert (workers.config_path, workers.current_value, workers.recommended_value) == ("parameters.workers", 0, 16)
    assert (found[Lever.PACKING].current_value, found[Lever.PACKING].recommended_value) == (False, True)
    assert "300 tokens where 1024 fit" in found[Lever.PACKING].impact
    assert found[Lever.BATCH_SIZE].recommended_value == 8
    assert report.health is Health.WARNING


def test_as_many_workers_are_advised_as_the_gpu_could_use() -> None:
    report = analyse(run_of_text(busy_percent=waiting(0.9)))  # busy for 9.6 % of the time
    assert advice_of(report)[Lever.WORKERS].recommended_value == 11


@pytest.mark.parametrize(
    ("tokens", "given"), [(900, {}), (300, {"packing": True})], ids=["rows are long", "packing is on"]
)
def test_packing_is_not_advised_where_it_would_change_nothing(tokens: int, given: dict[str, object]) -> None:
    report = analyse(run_of_text(busy_percent=waiting(1.0), tokens_per_row=tokens, given=given))
    assert list(advice_of(report)) == [Lever.WORKERS, Lever.BATCH_SIZE]


def test_counts_that_begin_anew_after_a_resume_do_not_make_rows_look_short() -> None:
    report = analyse(run_of_text(busy_percent=waiting(1.0), tokens_per_row=900, resumed=True))
    assert Lever.PACKING not in advice_of(report)


@pytest.mark.parametrize(
    ("loads", "advised"),
    [
        ({"main": 8.0, "worker": 99.0}, [Lever.WORKERS]),
        ({"main": 100.0, "worker": 0.0}, [Lever.PACKING, Lever.BATCH_SIZE]),
        ({"main": 8.0, "worker": 0.0}, [Lever.WORKERS, Lever.PACKING, Lever.BATCH_SIZE]),
    ],
    ids=["the workers are slow", "the training is slow", "they wait for a disk"],
)
def test_processes_that_have_all_they_can_do_show_what_is_slow(loads: dict[str, float], advised: list[Lever]) -> None:
    report = analyse(run_of_text(busy_percent=waiting(1.0), given={"workers": 4}, loads=loads))
    assert list(advice_of(report)) == advised


def test_where_every_core_prepares_rows_already_a_faster_machine_is_all_that_helps() -> None:
    loads = {"main": 8.0, "worker": 99.0}
    report = analyse(run_of_text(busy_percent=waiting(1.0), given={"workers": 16}, loads=loads))
    assert list(advice_of(report)) == [Lever.MACHINE_DISK]


@pytest.mark.parametrize(
    "busy", [[30.0] * SECONDS, waiting(0.05), waiting(1.0)[:29]], ids=["low but even", "mostly busy", "few samples"]
)
def test_a_gpu_that_does_not_wait_gets_no_such_advice(busy: list[float]) -> None:
    assert advice_of(analyse(run_of_text(busy_percent=busy))) == {}


def test_a_gpu_whose_load_was_not_measured_gets_no_such_advice() -> None:
    run = run_of_text(busy_percent=waiting(1.0))
    without = {name: each for name, each in run.tables.items() if name != "GpuSample"}
    report = analyse(RecordedRun(job_id=run.job_id, tables=without, info=run.info, config=run.config))
    assert advice_of(report) == {}
