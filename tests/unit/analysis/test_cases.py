"""The analysis of simulated trainings: the right cause first, the right figures, no false alarm."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest

from stationmaster.analysis.analyse import analyse
from tests.support.analysis_cases.case import Case
from tests.support.analysis_cases.catalogue import CASES
from tests.support.analysis_cases.judge import problems
from tests.support.analysis_cases.reading import recorded_run
from tests.support.analysis_cases.twists import TWISTS

TWISTED = list(zip(list(CASES)[::9], cycle(TWISTS)))  # the second one has no end


def wrong_with_its_analysis(case: Case, folder: Path) -> list[str]:
    case.write(folder)
    report = analyse(recorded_run(folder, job=case.label["job"]))
    found = problems(report.as_json(), case.label)
    return [case.label["why"], *found] if found else []


@pytest.mark.parametrize("name", CASES)
def test_a_simulated_training_is_analysed_as_its_label_asks(name: str, tmp_path: Path) -> None:
    assert not wrong_with_its_analysis(CASES[name](), tmp_path)


@pytest.mark.parametrize(("name", "twist"), TWISTED)
def test_what_is_odd_about_the_files_does_not_change_the_answer(name: str, twist: str, tmp_path: Path) -> None:
    assert not wrong_with_its_analysis(TWISTS[twist](CASES[name]()), tmp_path)
