"""A job's file in the shape of a trainer's config: its monitoring block is read and converted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from stationmaster.config import monitoring_of, read_monitoring
from stationmaster.errors import ConfigInvalid, UserError
from stationmaster.settings import MonitoringSettings
from stationmaster.station.job_file import read_job_file
from stationmaster.station.trainer_config import with_trainer_monitoring

BLOCK = {
    "enabled": False, "sample_interval_seconds": 2, "track_per_process": False, "analyze_on_complete": False,
    "memory_warning_threshold": 0.7, "memory_critical_threshold": 0.9,
}  # fmt: skip


def job_file(folder: Path, **more: Any) -> Path:
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump({"recipe": "tiny-lora@1", "dataset": "cats", **more}))
    return path


def test_the_block_of_a_process_is_the_job_s_monitoring(tmp_path: Path) -> None:
    path = job_file(tmp_path, config={"process": [{"monitoring": BLOCK}]})
    request = read_job_file(path).request()
    watched = monitoring_of(read_monitoring(request.monitoring), MonitoringSettings())
    assert {name: getattr(watched, name) for name in BLOCK} == BLOCK


@pytest.mark.parametrize("config", [None, {}, {"process": None}, {"process": []}, {"process": [{}, None]}])
def test_without_a_block_the_defaults_hold(tmp_path: Path, config: Any) -> None:
    request = read_job_file(job_file(tmp_path, config=config)).request()
    assert request.monitoring == {}


def test_the_job_s_own_block_wins_and_the_same_block_twice_is_one(tmp_path: Path) -> None:
    process = [{"monitoring": BLOCK}, {"monitoring": dict(BLOCK)}]
    path = job_file(tmp_path, config={"process": process}, monitoring={"gracePeriod": 60_000, "enabled": True})
    monitoring = read_monitoring(read_job_file(path).request().monitoring)
    assert monitoring == {**BLOCK, "grace_period": 60.0, "enabled": True}


@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("x", "config must be a table"),
        ({"process": {"monitoring": {}}}, "config.process must be a list"),
        ({"process": [7]}, r"config.process\[0\] must be a table"),
        ({"process": [{"monitoring": [1]}]}, r"config.process\[0\].monitoring must be a table"),
        ({"name": "cats"}, "config.name is not supported"),
        ({"process": [{"train": {"steps": 9}}]}, r"config.process\[0\].train is not supported"),
        (
            {"process": [{"monitoring": {"enabled": x}} for x in (True, False)]},
            "config.process has 2 different monitoring blocks",
        ),
    ],
)
def test_anything_else_below_config_is_told(config: Any, told: str) -> None:
    with pytest.raises(UserError, match=f"job.yaml: {told}") as raised:
        with_trainer_monitoring({"config": config}, Path("job.yaml"))
    assert raised.value.hint


def test_a_wrong_value_is_told_like_any_other(tmp_path: Path) -> None:
    path = job_file(tmp_path, config={"process": [{"monitoring": {"memory_warning_threshold": 3}}]})
    with pytest.raises(ConfigInvalid, match="memory_warning_threshold"):
        read_monitoring(read_job_file(path).request().monitoring)
