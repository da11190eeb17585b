"""A whole job on a machine in memory: its plan asks for samples, and its measured values are stored."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from stationmaster.settings import MonitoringSettings
from tests.support.chaos.fake import JOB, POLICY, SCRIPT, FakeStation, Template
from tests.support.chaos.points import KillPoints


def test_the_job_s_monitoring_goes_into_its_plan(tmp_path: Path) -> None:
    monitoring = MonitoringSettings(
        poll_interval=0, watch_interval=0, enabled=False, sample_interval_seconds=2.5, track_per_process=False
    )
    station = FakeStation(Template(tmp_path), tmp_path / "run", policy=replace(POLICY, monitoring=monitoring))
    station.work(KillPoints())
    (machine,) = station.machines.values()
    (plan,) = (json.loads(data) for path, data in machine.remote.files.items() if path.endswith("/plan.json"))
    assert plan["monitoring"] == {"enabled": False, "interval_seconds": 2.5, "per_process": False}


def test_measured_values_are_stored_and_a_full_memory_is_noted(tmp_path: Path) -> None:
    script = replace(SCRIPT, training_steps=40, checkpoint_every=20, memory_used_gb=15.0)
    station = FakeStation(Template(tmp_path), tmp_path / "run", script=script)
    station.work(KillPoints())
    with station.store() as store:
        steps = store.series.read(JOB, "StepMetric")[1]
        samples = store.series.read(JOB, "MetricsSample")[1]
        anomalies = [event.payload for event in store.events.of_job(JOB) if event.kind == "anomaly"]
    assert steps.values("step") == list(range(1, 41))
    assert set(samples.values("available_memory_gb")) == {1.0}
    (found,) = (payload for payload in anomalies if payload["anomaly"] == "memory_high")
    assert found["evidence"] == "94 % of the system memory was in use (15.0 of 16.0 GB; threshold 85 %)"
