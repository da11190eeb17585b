"""A loss that became nan is shown as such, also where the trainer prints 0 in its place."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from stationmaster.control.states.executing.log_watch import ReadLog, read_log
from stationmaster.control.states.executing.training_events import milestone_news
from stationmaster.model import Job, State
from stationmaster.remote.status import LogPiece, Status, StepStatus
from stationmaster.settings import MonitoringSettings
from stationmaster.station.wire.job_parts import ProgressDocument
from stationmaster.store.codec import progress_to_text
from tests.support.jobs.spine_values import job


def bar(step: int, loss: str) -> str:
    return f"\rcats:  {step}%|#         | {step}/100 [00:10<01:30,  1.00s/it, lr: 1.0e-04 loss: {loss}]"


def look(text: str, before: Job, framework: str = "ai-toolkit") -> ReadLog:
    train = StepStatus(index=0, name="train", state="running", training=True, try_number=1, started_at=1.0)
    piece = LogPiece(stream="0.1", inode=1, start=0, end=len(text), data=text.encode())
    seen = Status(
        wall=200.0, monotonic=200.0, boot_id="b", started=True, steps=(train,), log=(piece,), training_alive=True
    )
    return read_log(before, seen, framework=framework, monitoring=MonitoringSettings(), now=500.0)


def after(before: Job, seen: ReadLog) -> Job:
    return replace(before, watching=seen.watching, progress=seen.progress)


def test_zeros_after_a_reported_nan_are_no_loss_until_there_is_one_again() -> None:
    started = job(state=State.EXECUTING)
    seen = look(f"{bar(1, '5.0e-01')}\nloss is nan\n{bar(2, '0.000e+00')}", started)
    assert math.isnan(seen.progress.loss or 0.0)
    assert {reading.step: reading.loss for reading in seen.readings} == {1: 0.5, 2: None}
    later = look(bar(3, "0.000e+00"), after(started, seen))
    assert math.isnan(later.progress.loss or 0.0), "another worker goes on with it"
    healed = look(bar(4, "4.0e-01"), after(started, later))
    assert (healed.progress.loss, healed.progress.first_loss) == (0.4, 0.5)
    zero = look(bar(5, "0.000e+00"), after(started, healed))
    assert zero.progress.loss == 0.0, "a zero after a real loss is a zero"


@pytest.mark.parametrize("shown", ["nan", "inf"])
def test_a_nan_that_the_bar_shows_is_one(shown: str) -> None:
    text = f"steps:  30%|#         | 300/1000 [03:20<30:00,  2.00s/it, avr_loss={shown}]"
    assert math.isnan(look(text, job(state=State.EXECUTING), "kohya").progress.loss or 0.0)


def test_it_is_kept_in_the_store_said_in_documents_and_left_out_of_events() -> None:
    started = job(state=State.EXECUTING)
    progress = look(f"loss is nan\n{bar(50, '0.000e+00')}", started).progress
    assert math.isnan(json.loads(progress_to_text(progress))["loss"])
    assert json.loads(ProgressDocument.of(progress).model_dump_json())["loss"] == "NaN"
    (milestone,) = milestone_news(started, progress).events
    assert milestone.payload["loss"] is None
