"""The labels of simulated trainings: each can be met, and an answer that is silent or wrong does not pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.analysis_cases.catalogue import CASES
from tests.support.analysis_cases.ideal import ideal_answer
from tests.support.analysis_cases.judge import problems


@pytest.fixture(scope="module")
def labels() -> dict[str, dict[str, Any]]:
    return {name: make().label for name, make in CASES.items()}


def test_every_label_can_be_met(labels: dict[str, dict[str, Any]]) -> None:
    wrong = {name: found for name, label in labels.items() if (found := problems(ideal_answer(label), label))}
    assert not wrong


def test_silence_does_not_pass_where_there_is_something_to_advise(labels: dict[str, dict[str, Any]]) -> None:
    for name, label in labels.items():
        silent = {**ideal_answer(label), "recommendations": []}
        assert bool(problems(silent, label)) is bool(label["first"] or label["must_include"]), name


def test_a_false_alarm_does_not_pass_on_a_healthy_run(labels: dict[str, dict[str, Any]]) -> None:
    label = labels["page_cache_fills_everything"]
    alarm = {
        "severity": "critical",
        "title": "Out of memory",
        "action": "Lower the batch size",
        "impact": "frees memory",
        "config_path": "config.process[0].train.batch_size",
        "current_value": 1,
        "recommended_value": 1,
    }
    found = problems({**ideal_answer(label), "recommendations": [alarm]}, label)
    assert {sentence.rpartition(" is ")[2] for sentence in found} >= {"a false alarm", "set already"}
