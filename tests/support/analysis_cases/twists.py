"""Changes to a case that change nothing of its answer: what real files look like besides their cause."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tests.support.analysis_cases.case import Case

Row = Mapping[str, Any]


def other_numbers(case: Case) -> Case:
    """Number the rows in another order than they were measured in."""
    chance = random.Random(3)

    def mixed(rows: list[Row]) -> list[Row]:
        order = list(rows)
        chance.shuffle(order)
        ids = sorted(row["id"] for row in rows)
        return [{**row, "id": number} for row, number in zip(order, ids, strict=True)]

    return _with_rows(case, mixed, without=("memory_snapshot_id",))


def fewer_columns(case: Case) -> Case:
    """Leave out readings that no cause rests on."""
    names = ("temperature_c", "power_watts", "power_limit_watts", "cpu_utilization_percent", "used_memory_gb")
    return _with_rows(case, list, without=names)


def broken_rows(case: Case) -> Case:
    """Add readings that cannot be, between the others."""

    def broken(rows: list[Row]) -> list[Row]:
        added = []
        for number, row in enumerate(rows[5::17]):
            if "gpu_index" in row and row["memory_total_gb"]:
                odd = {"memory_used_gb": -1.0 if number % 2 else 3.1 * row["memory_total_gb"]}
            elif "available_memory_gb" in row:
                odd = {"available_memory_gb": row["total_memory_gb"] * (1.4 if number % 2 else -0.3)}
                odd["main_process_memory_gb"] = -1.0
            else:
                continue
            added.append({**row, **odd, "id": 100_000 + row["id"], "timestamp": row["timestamp"] + 0.4})
        return [*rows, *added]

    return _with_rows(case, broken)


def another_job(case: Case) -> Case:
    """Add the rows of another job, which failed: copies of these an hour later, at other levels."""
    job = case.label["job"]

    def doubled(rows: list[Row]) -> list[Row]:
        others = []
        for row in rows:
            if row["job_id"] == job:
                odd = {"memory_used_gb": row["memory_total_gb"]} if row.get("memory_total_gb") else {}
                moved = {"id": 200_000 + row["id"], "job_id": "an0therjob", "timestamp": row["timestamp"] + 3600}
                others.append({**row, **odd, **moved})
        return [*rows, *others]

    info = {**case.info, "an0therjob": {"exit_code": "1", "platform": "discrete", "framework": "kohya"}}
    return replace(_with_rows(case, doubled, without=("memory_snapshot_id",)), info=info)


def fewer_facts(case: Case) -> Case:
    """Leave out facts that other files show too."""
    names = ("framework", "gpu_count", "total_steps")
    info = {job: {key: value for key, value in facts.items() if key not in names} for job, facts in case.info.items()}
    return replace(case, info=info)


def windows_lines(case: Case) -> Case:
    """End the log's lines as Windows does."""
    return replace(case, log=case.log.replace("\n", "\r\n"))


def noisy_log(case: Case) -> Case:
    """Begin the log with lines that look like errors."""
    noise = (
        "ERROR: TensorBoard could not bind to port 6006, it was already in use\n"
        "Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN\n"
        "huggingface/tokenizers: The current process just got forked, after parallelism has already been used.\n"
        "Error caught was: No module named 'triton'\n"
    )
    marks = ["could not bind to port", "Unable to register", "just got forked", "No module named 'triton'"]
    label = {**case.label, "noise": [*case.label["noise"], *marks]}
    return replace(case, log=noise + case.log, label=label) if case.log else case


TWISTS: Mapping[str, Callable[[Case], Case]] = {
    twist.__name__: twist
    for twist in (other_numbers, fewer_columns, broken_rows, another_job, fewer_facts, windows_lines, noisy_log)
}


def _with_rows(case: Case, change: Callable[[list[Row]], list[Row]], *, without: tuple[str, ...] = ()) -> Case:
    def kept(row: Row) -> Row:
        return {key: value for key, value in row.items() if key not in without}

    return replace(case, rows={table: [kept(row) for row in change(list(rows))] for table, rows in case.rows.items()})
