"""`stationmaster replay` on files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.cli.replay import replay
from stationmaster.errors import ConfigInvalid, NotFound, UserError
from tests.support.watching.trace_maker import Plain, Run, Trainer
from tests.support.watching.trace_scenarios import Scenario, hang, steady


def trace_file(folder: Path, made_by: Scenario = hang) -> Path:
    made = made_by(3, Trainer)
    path = folder / "trace.json"
    config = {"total_steps": made.total_steps, "grace_s": 900, "poll_s": 60, "end_t": made.end}
    path.write_text(json.dumps({"framework": "auto", "config": config, "chunks": made.chunks}), encoding="utf-8")
    return path


def events(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_events_come_one_json_object_per_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(trace_file(tmp_path), as_json=True)
    told = events(capsys.readouterr().out)
    assert [event["event"] for event in told] == ["stall_flagged", "terminate"]
    assert float(str(told[1]["t"])) - float(str(told[0]["t"])) == 900
    assert told[0]["isStalling"] is True
    assert told[0]["recommendation"] == "alert"
    assert told[1]["recommendation"] == "terminate"


def test_a_threshold_can_be_tried_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace_file(tmp_path)
    replay(path, as_json=True)
    usual = events(capsys.readouterr().out)[0]["t"]
    replay(path, as_json=True, settings=["stall.min_window=5m"])
    assert float(str(events(capsys.readouterr().out)[0]["t"])) == float(str(usual)) - 300


def test_people_read_times_and_reasons(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replay(trace_file(tmp_path))
    shown = capsys.readouterr().out
    assert "stall flagged" in shown
    assert "no new step since step" in shown
    replay(trace_file(tmp_path, steady))
    assert capsys.readouterr().out.startswith("no stall in")


@pytest.mark.parametrize("shape", ["%s ", "[%s] "])
def test_a_log_with_times_is_replayed_as_well(shape: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run(Plain(), seed=1, total=4000, step_seconds=1.5)
    run.load()
    run.train(1500)
    run.quiet(1500)
    run.say("[monitor] alive\n")
    lines = [
        (shape % f"{1_770_000_000 + at:.1f}") + line
        for at, text in run.chunks
        for line in text.splitlines(keepends=True)
    ]
    path = tmp_path / "train.log"
    path.write_text("".join(lines), encoding="utf-8")
    replay(path, as_json=True)
    assert [event["event"] for event in events(capsys.readouterr().out)] == ["stall_flagged"]


def test_samples_of_the_machine_in_a_trace_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = trace_file(tmp_path)
    replay(path, as_json=True)
    usual = float(str(events(capsys.readouterr().out)[0]["t"]))
    trace = json.loads(path.read_text(encoding="utf-8"))
    idle: dict[str, object] = {"gpus": 1, "gpu_percent": 0, "cpu_percent": 0.5, "memory_gb": 4, "io_mb_per_second": 0}
    idle |= {"network_mb_per_second": 0, "processes": [7], "states": ["asleep"], "unknown": "ignored"}
    onset, end = trace["chunks"][-2][0], trace["chunks"][-1][0]
    trace["samples"] = [[at, {**idle, "gpu_percent": 90 if at <= onset else 0}] for at in range(0, int(end), 5)]
    path.write_text(json.dumps(trace), encoding="utf-8")
    replay(path, as_json=True)
    early = events(capsys.readouterr().out)[0]
    assert usual - float(str(early["t"])) >= 240
    assert "GPU 0 %, CPU 0 %, nothing read or written, the process asleep" in str(early["reason"])


def test_what_cannot_be_replayed_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        replay(tmp_path / "none.json")
    (tmp_path / "a.log").write_text("step 1\nstep 2\n")
    with pytest.raises(UserError, match="starts with a time") as caught:
        replay(tmp_path / "a.log")
    assert caught.value.hint
    (tmp_path / "b.json").write_text('{"chunks": [["soon", "x"]]}')
    with pytest.raises(UserError, match="not a trace"):
        replay(tmp_path / "b.json")
    (tmp_path / "c.json").write_text('{"chunks": [[0, "x"]], "samples": [[5, {"cpu_percent": "low"}]]}')
    with pytest.raises(UserError, match="samples: a sample holds numbers"):
        replay(tmp_path / "c.json")
    with pytest.raises(ConfigInvalid):
        replay(trace_file(tmp_path), settings=["min_window=5m"])
