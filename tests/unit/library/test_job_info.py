"""What a monitor is given, as plain data."""

from __future__ import annotations

import pytest

from stationmaster.errors import ConfigInvalid
from stationmaster.library.checkpoints import step_in_path
from stationmaster.library.job_info import JobInfo, policy_from
from stationmaster.watch.policy import StallPolicy


def test_job_info_is_read_from_either_spelling_and_ignores_what_it_does_not_need() -> None:
    camel = JobInfo.from_mapping({"logFile": "/l", "pidFile": "/p", "outputDir": "/o", "totalSteps": 9, "jobId": "x"})
    snake = JobInfo.from_mapping({"log_file": "/l", "pid_file": "/p", "output_dir": "/o", "total_steps": 9})
    assert camel == snake == JobInfo(log_file="/l", pid_file="/p", output_dir="/o", total_steps=9)


def test_a_file_that_is_missing_is_named() -> None:
    with pytest.raises(ConfigInvalid, match="the job info has no pid_file") as refused:
        JobInfo.from_mapping({"logFile": "/l", "outputDir": "/o"})
    assert refused.value.hint is not None


def test_a_config_sets_thresholds_by_the_names_of_a_monitoring_block() -> None:
    config = {
        "gracePeriod": 10 * 60 * 1000,
        "pollInterval": 60_000,
        "stallThreshold": 0.4,
        "stallDetection": {"enabled": True, "minSamples": 5, "speedDropThreshold": 0.3},
    }
    assert policy_from(config) == StallPolicy(
        grace=600.0, eta_convergence_threshold=0.4, min_samples=5, speed_drop_threshold=0.3
    )
    assert policy_from({"grace_period": "20m", "min_window": "5m"}) == StallPolicy(grace=1200.0, min_window=300.0)
    assert policy_from({}) == StallPolicy()


@pytest.mark.parametrize("config", [{"gracePeriod": "soon"}, {"stallTreshold": 0.4}, {"minSamples": -1}])
def test_a_config_that_cannot_be_meant_is_refused(config: dict[str, object]) -> None:
    with pytest.raises(ConfigInvalid):
        policy_from(config)


@pytest.mark.parametrize(
    ("path", "step"),
    [
        ("/o/lora_000000500.safetensors", 500),
        ("/o/lora-step00000250.safetensors", 250),
        ("/o/checkpoint-40/model-00001-of-00002.safetensors", 40),
        ("/o/checkpoint-40/adapter_model.safetensors", 40),
        ("/o/flux2_v3.safetensors", None),
        ("/o/portrait_v2.safetensors", None),
        ("/runs_2024/lora.safetensors", None),
    ],
)
def test_a_checkpoint_is_named_after_its_step(path: str, step: int | None) -> None:
    assert step_in_path(path) == step
