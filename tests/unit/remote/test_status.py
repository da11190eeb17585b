from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.remote.status import LogMark, LogPiece, Since, Status, parse_status

LEAST: dict[str, Any] = {"wall": 1731.5, "monotonic": 55, "started": False}

FULL: dict[str, Any] = {
    "format": 1,
    "version": "0.1.0",
    "wall": 1731.2,
    "monotonic": 55.1,
    "boot_id": "b",
    "started": True,
    "supervisor": {"alive": True, "pid": 7, "mood": "fine"},
    "steps": [
        {"index": 0, "name": "check", "state": "done", "try": 1, "exit_code": 0, "started_at": 1.0, "ended_at": 2.0},
        {"index": 1, "name": "train", "training": True, "state": "running", "try": 2, "pid": 12, "exit_code": None},
    ],
    "finished": {"result": "failed", "step": "train", "exit_code": 1, "at": 9.5},
    "training_alive": True,
    "needs_secrets": ["HF_TOKEN"],
    "heartbeat": 1731.0,
    "log": [
        {
            "stream": "1.1",
            "inode": 3,
            "start": 0,
            "end": 812,
            "restarted": True,
            "data": base64.b64encode(b"\x00\xff\r").decode(),
            "times": [[0, 1731.1], [640, 1732]],
        }
    ],
    "more": True,
    "series": [
        {"table": "StepMetric", "last": 6, "columns": {"id": [5, 6], "step": [1, 2], "timestamp": [1.0, 2.0]}},
        {"table": "RunInfo", "last": 1, "columns": {"id": [1], "key": ["platform"], "value": ["cpu"]}},
    ],
    "outputs": [{"path": "output/a.safetensors", "kind": "checkpoint", "size": 9, "mtime": 1731.0}],
    "gpu": [{"index": 0, "name": "X", "memory_used_mib": 1, "memory_total_mib": None, "utilization_percent": 3}],
    "memory": {"total_bytes": 4, "available_bytes": 1},
    "disk": {"total_bytes": 10, "free_bytes": 5},
    "something_new": {"from": "a later version"},
}

FAILED: dict[str, Any] = {"index": 0, "name": "train", "state": "failed", "try": 1, "exit_code": 1, "failure": "exit"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


def test_a_full_answer_is_read_in_every_part() -> None:
    status = parse_status(FULL)
    assert status.supervisor.pid == 7
    assert [(step.name, step.state, step.try_number, step.training) for step in status.steps] == [
        ("check", "done", 1, False),
        ("train", "running", 2, True),
    ]
    assert status.finished is not None
    assert (status.finished.result, status.finished.step, status.finished.exit_code) == ("failed", "train", 1)
    assert status.needs_secrets == ("HF_TOKEN",)
    assert status.log == (
        LogPiece(
            stream="1.1",
            inode=3,
            start=0,
            end=812,
            data=b"\x00\xff\r",
            restarted=True,
            times=((0, 1731.1), (640, 1732.0)),
        ),
    )
    assert status.more
    assert status.outputs[0].path == "output/a.safetensors"
    assert status.gpu is not None
    assert status.gpu[0].memory_total_mib is None
    assert status.disk is not None
    assert status.disk.free_bytes == 5


def test_what_is_missing_is_defaulted() -> None:
    assert parse_status(LEAST) == Status(wall=1731.5, monotonic=55.0, boot_id="", started=False)


@pytest.mark.parametrize("key", sorted(LEAST))
def test_an_answer_without_its_essentials_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="not a status"):
        parse_status({name: value for name, value in FULL.items() if name != key})


@given(st.sampled_from(sorted(FULL)), json_values)
def test_nonsense_under_any_key_is_read_or_refused_but_never_breaks(key: str, value: object) -> None:
    try:
        parse_status({**FULL, key: value})
    except ValueError:
        pass  # refused


@given(
    st.dictionaries(st.from_regex(r"[0-9]\.[0-9]", fullmatch=True), st.tuples(st.integers(0), st.integers(0))),
    st.dictionaries(st.text(), st.integers(0)),
)
def test_a_position_survives_being_written_down(marks: dict[str, tuple[int, int]], series: dict[str, int]) -> None:
    log = {stream: LogMark(inode=inode, offset=offset) for stream, (inode, offset) in marks.items()}
    since = Since(log=log, series=series)
    assert Since.from_json(since.to_json()) == since


@pytest.mark.parametrize(
    "nonsense", [None, {}, {"log": {"0.1": 7}}, {"log": 3, "series": None}, {"series": {"StepMetric": "x"}}]
)
def test_a_position_that_cannot_be_read_is_the_beginning(nonsense: dict[str, Any] | None) -> None:
    assert Since.from_json(nonsense) == Since()


def test_a_position_moves_on_with_what_was_read_and_keeps_the_rest() -> None:
    before = Since(
        log={"0.1": LogMark(inode=1, offset=5), "1.1": LogMark(inode=2, offset=100)},
        series={"StepMetric": 4, "GpuSample": 9},
    )
    after = before.after(parse_status(FULL))
    assert after.log == {"0.1": LogMark(inode=1, offset=5), "1.1": LogMark(inode=3, offset=812)}
    assert after.series == {"StepMetric": 6, "GpuSample": 9, "RunInfo": 1}


def series_of(*pieces: object) -> Status:
    return parse_status({**LEAST, "series": list(pieces)})


def steps_of(**changes: object) -> dict[str, Any]:
    return {
        "table": "StepMetric",
        "last": 2,
        "columns": {"id": [1, 2], "step": [1, 2], "timestamp": [1.0, 2.0]},
    } | changes


def test_measured_rows_are_read_by_table() -> None:
    status = parse_status(FULL)
    assert [(table.name, len(table)) for table in status.series] == [("StepMetric", 2), ("RunInfo", 1)]
    assert status.series[0].values("step") == [1, 2]


def test_rows_that_cannot_be_used_are_left_out_and_not_asked_for_again() -> None:
    status = series_of(steps_of(columns={"id": [1]}), {"table": "FutureSample", "last": 7, "columns": {"id": [7]}})
    assert status.series == ()
    assert Since().after(status).series == {"StepMetric": 2, "FutureSample": 7}


@pytest.mark.parametrize("last", [None, "2", -1, 2.5, True, 2**60, [2]])
def test_a_position_that_makes_no_sense_is_ignored(last: object) -> None:
    status = series_of(steps_of(last=last))
    assert len(status.series) == 1
    assert Since(series={"StepMetric": 1}).after(status).series == {"StepMetric": 1}


def test_a_position_never_goes_back() -> None:
    assert Since(series={"StepMetric": 9}).after(series_of(steps_of(last=3))).series == {"StepMetric": 9}


def test_a_machine_that_sends_too_much_is_read_in_part() -> None:
    many = list(range(60_000))
    large = steps_of(columns={"id": many, "step": many, "timestamp": many}, last=60_000)
    status = series_of(large, large, steps_of())
    assert [len(table) for table in status.series] == [60_000, 2]


def test_a_machine_cannot_make_its_position_large() -> None:
    since = Since().after(series_of(*(steps_of(table=f"table {number}") for number in range(1000))))
    since = since.after(series_of(*(steps_of(table=f"other {number}") for number in range(1000))))
    since = since.after(series_of(steps_of(table="x" * 1000)))
    assert len(since.series) <= 32
    assert len(str(since.to_json())) < 3000


def test_the_error_of_a_step_is_read_and_an_older_trackside_tells_none() -> None:
    old = parse_status({**LEAST, "steps": [FAILED]}).steps[0]
    assert (old.error, old.cannot_pass) == (None, False)
    told = {**FAILED, "error": "KeyError: 'rank'", "cannot_pass": True}
    new = parse_status({**LEAST, "steps": [told]}).steps[0]
    assert (new.error, new.cannot_pass) == ("KeyError: 'rank'", True)
