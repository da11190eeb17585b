"""Trainings of a few lines, in processes of their own, and what their databases hold afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.machines.recorded_training import RecordedTraining


@pytest.fixture
def training(tmp_path: Path) -> RecordedTraining:
    return RecordedTraining(tmp_path)
