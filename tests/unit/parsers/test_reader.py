"""What LogReader tells while a log grows."""

from __future__ import annotations

import pytest

from stationmaster.parsers import ErrorKind, LogReader, Phase, Scope

_TRAINING_BAR = b"\rcup:  10%|#         | 100/1000 [01:40<15:00,  1.00s/it, lr: 1.0e-04 loss: 5.000e-01]"


def test_a_bar_is_told_at_once_although_nothing_has_ended_it() -> None:
    (reading,) = LogReader().feed(_TRAINING_BAR, at=12.5)
    assert (reading.at, reading.step, reading.total_steps, reading.scope) == (12.5, 100, 1000, Scope.RUN)
    assert (reading.loss, reading.learning_rate, reading.steps_per_second) == (0.5, 1e-4, 1.0)
    assert (reading.eta_seconds, reading.phase) == (900.0, Phase.TRAINING)


def test_a_bar_told_before_its_end_is_not_told_again_when_it_ends() -> None:
    reader = LogReader()
    reader.feed(_TRAINING_BAR)
    assert reader.feed(b"\r") == []


def test_half_a_bar_is_not_told() -> None:
    assert LogReader().feed(_TRAINING_BAR[:40]) == []


def test_half_a_line_is_not_told_however_much_it_looks_like_progress() -> None:
    assert LogReader().feed(b"Epoch: [0] [10/6") == []


def test_other_bars_tell_their_phase_and_never_a_step() -> None:
    reader = LogReader()
    reader.feed(_TRAINING_BAR)
    readings = reader.feed(b"\rGenerating Samples:  50%|#####     | 1/2 [00:10<00:10, 10.0s/it]\r")
    assert [(reading.step, reading.phase) for reading in readings] == [(None, Phase.SAMPLING)]
    assert reader.summary().step == 100


def test_redraws_that_arrive_together_are_thinned_to_the_last() -> None:
    redraws = b"".join(
        b"\rsteps:  5%%|5  | %d/9000 [00:10<02:30,  1.00it/s, loss=0.5]" % step for step in range(1, 800)
    )
    steps = [reading.step for reading in LogReader().feed(redraws)]
    assert steps[-1] == 799
    assert len(steps) < 10


def test_an_error_is_told_once_and_again_only_when_it_becomes_fatal() -> None:
    reader = LogReader()
    skipped = b"# OOM during training step, skipping batch %d/3 #\n"
    told = [reading.error for number in (1, 2, 3) for reading in reader.feed(skipped % number) if reading.error]
    assert [error.fatal for error in told] == [False]
    readings = reader.feed(b"Error running job: OOM during training step 3 times in a row, aborting training\n")
    assert [(reading.error.kind, reading.error.fatal) for reading in readings if reading.error] == [
        (ErrorKind.OOM, True)
    ]
    assert len(reader.summary().errors) == 1


def test_a_checkpoint_is_told_once_however_often_it_is_printed() -> None:
    reader = LogReader()
    line = b"saving checkpoint to out-char\n"
    assert [reading.checkpoint for reading in reader.feed(line)] == ["out-char"]
    assert [reading.checkpoint for reading in reader.feed(line) if reading.checkpoint] == []


def test_malformed_lines_do_not_hide_the_others_of_a_batch() -> None:
    reader = LogReader()
    reader.feed(b"\xff\xfe Step ???: Loss = \n{'loss': \nStep 100: Loss = 2.345\n%%%|||[[\n")
    assert (reader.summary().step, reader.summary().loss) == (100, 2.345)


def test_an_unnamed_bar_far_below_the_configured_steps_is_not_the_training() -> None:
    reader = LogReader(total_steps=2000)
    reader.feed(b"\r 50%|#####     | 9/18 [00:01<00:01,  9.00it/s]\r")
    assert reader.summary().step is None
    reader.feed(b"\r  5%|5         | 100/2000 [00:10<03:10, 10.00it/s]\r")
    assert reader.summary().step == 100


def test_a_run_that_goes_on_after_an_error_has_not_failed() -> None:
    reader = LogReader()
    reader.feed(b"Step 5/9: loss=1\nRuntimeError: could not reach the tracker\n")
    assert reader.summary().phase == Phase.FAILED
    reader.feed(b"Step 6/9: loss=1\n")
    assert reader.summary().phase == Phase.TRAINING
    assert [error.fatal for error in reader.summary().errors] == [False]


def test_a_bar_drawn_once_more_after_a_crash_does_not_heal_it() -> None:
    reader = LogReader()
    reader.feed(_TRAINING_BAR + b"\nRuntimeError: it broke\n" + _TRAINING_BAR + b"\n")
    assert reader.summary().phase == Phase.FAILED


def test_a_run_started_again_into_the_same_log_is_training_and_keeps_its_error() -> None:
    reader = LogReader()
    reader.feed(_TRAINING_BAR + b"\nRuntimeError: it broke\n")
    reader.feed(b"\rcup:   1%|          | 10/1000 [00:10<16:30,  1.00s/it, lr: 1.0e-04 loss: 6.000e-01]\r")
    summary = reader.summary()
    assert (summary.phase, summary.step) == (Phase.TRAINING, 10)
    assert [error.fatal for error in summary.errors] == [True]


def test_what_follows_a_fatal_error_is_not_another_cause() -> None:
    reader = LogReader()
    reader.feed(
        b"RuntimeError: CUDA error: unspecified launch failure\nncclSystemError: connection closed\nValueError: x\n"
    )
    assert [error.kind for error in reader.summary().errors] == [ErrorKind.CUDA]


@pytest.mark.parametrize("framework", ["kohya", "sd-scripts", "Kohya_SS", "auto", "nobody-knows-this"])
def test_a_hint_is_never_an_obstacle(framework: str) -> None:
    reader = LogReader(framework=framework)
    reader.feed(_TRAINING_BAR)
    assert reader.summary().step == 100


def test_the_trainer_is_recognised_by_what_only_it_prints() -> None:
    reader = LogReader()
    reader.feed("running training / 学習開始\n".encode())
    assert reader.summary().framework == "kohya"
