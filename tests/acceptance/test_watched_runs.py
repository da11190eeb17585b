"""On rented machines: runs that hang, recover or turn NaN end as promised.

Those that slow down, hang in saving or are cut off are in `tests/chaos/watched_marathon.py`. What is decided about
them: `tests/unit/watch`, `tests/unit/control/test_last_save.py` and `test_partition.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from stationmaster.model import Job, Outcome, Reason
from tests.support.watching.watched_scenarios import Scale, WatchedStation, in_order, watched_station

# Steps are long beside what a busy computer adds to them, and every limit is many steps: load crosses none of them.
SECONDS = Scale(
    step_seconds=0.25,
    healthy_steps=64,
    save_every=12,
    endless_steps=2000,
    pauses_steps=130,
    cut_seconds=25.0,
    cut_steps=160,
    patience_seconds=180.0,
    names=("pauses", "hangs", "nans"),
    monitoring={
        "poll_interval": 1.0,
        "grace_period": 3.0,
        "save_timeout": 4.0,
        "silence_alert": 3.0,
        "stall_detection": {
            "thresholds": {
                "min_window": "5s",
                "near_end_eta": "1s",
                "near_end_progress": 1,
                "resume_span": "1s",
                "resume_window": "3s",
                "saving_limit": "8s",
                "collapse_hold": "3s",
                "trend_windows": 1,
                "sustain_windows": 1,
            }
        },
    },
    own={"pauses": {"grace_period": 120.0}},
    environ={
        "STATIONMASTER_WORKER__LOOK": "0.5",
        "STATIONMASTER_WORKER__LEASE": "12",
        "STATIONMASTER_WORKER__RENEW": "3",
        "STATIONMASTER_WORKER__SWEEP": "5",
        "STATIONMASTER_SSH__KEEPALIVE": "1",
        "STATIONMASTER_SSH__ANSWER": "8",
        "STATIONMASTER_MONITORING__SILENCE_ALERT": "3",
        "STATIONMASTER_ARTIFACTS__EVERY": "0",
    },
)
STALL, ENDED, EARLY = "⚠️ Training Stall Detected", "🛑 Training Terminated", "🟡 Training ended early"


@pytest.fixture(scope="module")
def station(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WatchedStation]:
    """All at once: they mostly wait."""
    with watched_station(SECONDS, tmp_path_factory.mktemp("watched")) as started:
        started.pause()
        yield started
    assert started.server.wrong == []


def kept_step(job: Job) -> int:
    """The step of the model that came home, which opens and is marked as what it is."""
    assert load_file(Path(job.model.address or ""))["lora_A.weight"].size
    return job.model.step or 0


def test_a_stalled_run_is_told_given_its_grace_and_ended_with_its_checkpoint(station: WatchedStation) -> None:
    job = station.until_ended("hangs")
    assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.STALLED), job.explanation
    kinds = station.kinds("hangs")
    told = [kind for kind in kinds if kind in ("stall_flagged", "stall_cleared", "terminate", "outcome")]
    while told[:2] == ["stall_flagged", "stall_cleared"]:  # a busy computer's own slowness, which passed
        told = told[2:]
    assert told == ["stall_flagged", "terminate", "outcome"]
    assert in_order(kinds, "terminate", "save_asked", "terminated", "model_safe", "outcome")
    saves = [event.payload for event in station.storm.store.events.of_job("hangs") if event.kind == "save_ended"]
    assert [one["state"] for one in saves] in ([], ["timed_out"]), "by home's own limit, or by the machine's"
    station.until(lambda: EARLY in station.titles("hangs"), "the last message")
    assert in_order(station.titles("hangs"), STALL, ENDED, EARLY)
    terminated = station.text("hangs", ENDED)
    step = kept_step(job)
    assert step >= 48
    assert f"Final checkpoint: step {step}\n" in terminated
    assert terminated.endswith("Model will be uploaded as incomplete.")


def test_a_run_that_comes_back_within_its_grace_goes_on_to_its_end(station: WatchedStation) -> None:
    job = station.until_ended("pauses")
    assert job.outcome is Outcome.COMPLETED, job.explanation
    kinds = station.kinds("pauses")
    assert in_order(kinds, "stall_flagged", "stall_cleared", "model_safe", "outcome")
    assert "terminate" not in kinds
    station.until(lambda: "✅ Training completed" in station.titles("pauses"), "the last message")
    assert in_order(station.titles("pauses"), STALL, "✅ Progress resumed", "✅ Training completed")


def test_a_run_that_turns_nan_is_ended_with_a_checkpoint_from_before(station: WatchedStation) -> None:
    job = station.until_ended("nans")
    assert (job.outcome, job.reason) == (Outcome.INCOMPLETE, Reason.ANOMALY), job.explanation
    assert "nan_loss" in (job.explanation or "")
    station.until(lambda: EARLY in station.titles("nans"), "the last message")
    assert in_order(station.titles("nans"), "⚠️ Anomaly detected: nan loss", ENDED, EARLY)
    assert 0 < kept_step(job) < SECONDS.healthy_steps
    assert "save_asked" not in station.kinds("nans"), "asked to save what is no number any more"


def test_everybody_reads_what_is_theirs_and_every_machine_is_gone_and_paid(station: WatchedStation) -> None:
    for name in SECONDS.names:
        station.until_ended(name)
    theirs = {message.recipient: message.text for message in station.server.received}
    assert theirs.keys() == {"4711", "17"}
    assert all(
        re.search(r"\nJob: hangs\b", message.text) for message in station.server.received if message.recipient == "17"
    )
    for name in ("hangs", "nans"):
        model = station.storm.store.models.of_job(name)
        assert model is not None
        assert not model.complete, f"the model of {name} is not marked as incomplete"
    station.storm.check()
