"""`stationmaster parse`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.cli.parse import parse
from stationmaster.errors import ConfigInvalid, NotFound
from tests.support.watching.training_logs import FIELDS, LOGS

_LOG = LOGS / "hf-trainer" / "save-fails.log"


def test_json_has_exactly_the_documented_fields(capsys: pytest.CaptureFixture[str]) -> None:
    parse(_LOG, as_json=True)
    document = json.loads(capsys.readouterr().out)
    assert set(document) == {"framework", *FIELDS, "errors", "checkpoints"}
    assert (document["step"], document["phase"], document["errors"][0]["kind"]) == (500, "failed", "disk_full")


def test_a_person_reads_step_phase_and_what_broke(capsys: pytest.CaptureFixture[str]) -> None:
    parse(_LOG)
    shown = capsys.readouterr().out
    assert "500 of 1000" in shown
    assert "failed" in shown
    assert "disk_full" in shown


def test_a_missing_file_and_an_unknown_framework_are_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"nowhere\.log"):
        parse(tmp_path / "nowhere.log")
    with pytest.raises(ConfigInvalid, match="unknown log format klingon"):
        parse(_LOG, framework="klingon")


def test_an_empty_log_says_nothing_and_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "empty.log"
    empty.touch()
    parse(empty, as_json=True)
    assert json.loads(capsys.readouterr().out)["phase"] is None


def test_a_pattern_reads_what_no_trainer_prints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "own.log"
    log.write_text("tick 40 cost 0.25\nkept as a.bin\n")
    parse(log, as_json=True, pattern=[r"tick (?P<step>\d+) cost (?P<loss>\S+)", r"kept as (?P<checkpoint>\S+)"])
    document = json.loads(capsys.readouterr().out)
    assert (document["step"], document["loss"], document["checkpoints"]) == (40, 0.25, ["a.bin"])
    with pytest.raises(ConfigInvalid, match="has an unknown group: speed"):
        parse(log, pattern=[r"(?P<speed>\d+)"])
