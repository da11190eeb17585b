"""Forked workers and several ranks share a run's database, and each row is written once."""

from __future__ import annotations

import signal
from contextlib import ExitStack

from tests.support.machines.recorded_training import RecordedTraining


def test_forked_workers_leave_the_trainings_journal_alone(training: RecordedTraining) -> None:
    """Workers as a data loader has them: they end in every way, while the training records."""
    training.run(
        """
        import multiprocessing
        def load(number):
            if number == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if number == 2:
                sys.exit(3)
        context = multiprocessing.get_context("fork")
        for epoch in range(4):
            workers = [context.Process(target=load, args=(number,)) for number in range(4)]
            for worker in workers:
                worker.start()
            for step in range(epoch * 500 + 1, epoch * 500 + 501):
                run.step(step, loss=0.5)
            for worker in workers:
                worker.join()
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        exit_code=-signal.SIGKILL,
    )
    training.fold_leftovers()
    assert training.recorded_steps() == list(range(1, 2001))
    assert training.is_sound()


def test_a_forked_child_records_in_a_journal_of_its_own(training: RecordedTraining) -> None:
    training.run(
        """
        run.step(1, loss=0.5)
        if os.fork() == 0:
            run.event("sampling_start", pid="child")
            run.step(1001, loss=0.5)
            sys.exit()  # with everything that Python does at its end
        run.step(2, loss=0.5)
        os.wait()
        run.step(3, loss=0.5)
        run.event("save_start", pid="parent")
        run.close()
        """
    )
    assert training.recorded_steps() == [1, 2, 3, 1001]
    assert sorted(training.rows("SELECT event_type FROM TrainingEvent")) == [("sampling_start",), ("save_start",)]
    assert training.journals() == []


def test_a_child_of_a_closed_run_records_nothing_and_ends_well(training: RecordedTraining) -> None:
    training.run(
        """
        run.step(1)
        run.close()
        if os.fork() == 0:
            run.step(2)
            sys.exit()
        assert os.wait()[1] == 0
        """
    )
    assert training.recorded_steps() == [1]


def test_of_several_ranks_one_records_steps_and_all_record_events(training: RecordedTraining) -> None:
    script = """
    for step in range(1, 301):
        run.step(step, loss=0.5)
    run.event("save_start", rank=os.environ["RANK"])
    run.close()
    """
    with ExitStack() as stack:
        ranks = [stack.enter_context(training.start(script, RANK=str(rank))) for rank in range(4)]
        assert [rank.wait(timeout=60) for rank in ranks] == [0, 0, 0, 0]
    assert training.recorded_steps() == list(range(1, 301))
    found = training.rows("SELECT json_extract(details, '$.rank') FROM TrainingEvent ORDER BY 1")
    assert found == [("0",), ("1",), ("2",), ("3",)]
    assert training.journals() == []
