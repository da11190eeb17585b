"""Whatever is killed and whenever: every step that was recorded is in the database afterwards, once."""

from __future__ import annotations

import signal

import pytest

from tests.support.machines.recorded_training import RecordedTraining
from tests.support.waiting import until

# An event wakes the thread that folds, so that it is at work at whatever line the process is killed.
KILLED_AFTER = """
for step in range(1, {steps} + 1):
    run.step(step, loss=1.0 / step, lr=1e-4, grad_norm=0.5{more})
    if step % {event_every} == 0:
        run.event("save_end")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("steps", [1, 1000])
def test_no_step_is_lost_when_the_training_is_killed_right_after_it(training: RecordedTraining, steps: int) -> None:
    training.run(KILLED_AFTER.format(steps=steps, event_every=steps + 1, more=", depth=2.0"), exit_code=-signal.SIGKILL)
    training.fold_leftovers()
    assert training.recorded_steps() == list(range(1, steps + 1))
    assert training.rows("SELECT count(*), count(DISTINCT step) FROM StepValue") == [(steps, steps)]
    assert training.journals() == []


@pytest.mark.parametrize("steps", [52, 333, 1000, 2048, 17_001, 34_567])
def test_no_step_is_lost_when_the_training_is_killed_while_its_journal_is_folded(
    training: RecordedTraining, steps: int
) -> None:
    training.run(KILLED_AFTER.format(steps=steps, event_every=25, more=""), exit_code=-signal.SIGKILL)
    training.fold_leftovers()
    assert training.recorded_steps() == list(range(1, steps + 1))
    assert training.rows("SELECT count(*) FROM TrainingEvent") == [(steps // 25,)]
    assert training.is_sound()


@pytest.mark.parametrize("seen", [300, 1000, 4000, 9000])
def test_no_step_is_lost_when_the_training_is_killed_from_outside(training: RecordedTraining, seen: int) -> None:
    """Any step whose call has returned is there; the one that was being written may be."""
    script = """
    for step in range(1, 1_000_000):
        run.step(step, loss=0.5)
        print(step, flush=True)
        if step % 50 == 0:
            run.event("save_end")
    """
    with training.start(script) as process:
        assert process.stdout is not None
        returned = [int(next(process.stdout)) for _ in range(seen)]
        process.kill()
        returned += [int(line) for line in process.stdout if line.endswith("\n")]
    training.fold_leftovers()
    recorded = training.recorded_steps()
    assert recorded == list(range(1, len(recorded) + 1))
    assert returned[-1] <= recorded[-1] <= returned[-1] + 1
    assert training.is_sound()


@pytest.mark.parametrize("folded", [1, 20_000])
def test_a_process_that_is_killed_while_it_folds_anothers_journal_neither_loses_nor_doubles_a_step(
    training: RecordedTraining, folded: int
) -> None:
    steps = 40_000
    training.run(KILLED_AFTER.format(steps=steps, event_every=steps + 1, more=""), exit_code=-signal.SIGKILL)
    with training.start("import time; time.sleep(600)") as folder:
        until(lambda: training.database.exists() and _count(training) >= folded, "some steps are folded")
        folder.kill()
    training.fold_leftovers()
    assert training.recorded_steps() == list(range(1, steps + 1))
    assert training.journals() == []
    assert training.is_sound()


def _count(training: RecordedTraining) -> int:
    if not training.rows("SELECT 1 FROM sqlite_master WHERE name = 'StepMetric'"):
        return 0
    (count,) = training.rows("SELECT count(*) FROM StepMetric")[0]
    return int(count)
