"""Read the facts on disk: which tries exist, which one runs, how the others ended."""

from __future__ import annotations

import os

from trackside.machine import locks
from trackside.machine.clock import Moment, moment_from_record
from trackside.machine.process import Process, is_alive, kill_leftovers, process_from_record
from trackside.records import read_record, remove_file, write_record
from trackside.root import Root, TryFolder
from trackside.steps.containers import container_of, remove
from trackside.steps.decide import judge
from trackside.steps.expected import check_any, check_expected
from trackside.steps.plan import Attach, Plan
from trackside.steps.tries import (
    Exit,
    Facts,
    Stopping,
    StopRequest,
    Try,
    Verdict,
    exit_from_record,
    stop_request_from_record,
    stopping_from_record,
    verdict_from_record,
)


class Observer:
    """Reads the facts and caches those that can no longer change."""

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._settled: dict[tuple[int, int], Try] = {}
        self._started: dict[tuple[int, int], tuple[Moment, Process | None]] = {}
        self._processes: dict[tuple[int, int], Process] = {}
        self._stop: StopRequest | None = None

    def observe(self, *, now: Moment, secrets_held: frozenset[str] = frozenset()) -> Facts:
        """Return everything known now. Judges a try that ended without a verdict on disk, but writes nothing."""
        tries: list[list[Try]] = [[] for _ in self._plan.steps]
        # The stop first: a try that ends after this is judged by the next call.
        stop = self._read_stop()
        for step, number in self._root.tries():
            if step < len(tries):
                tries[step].append(self._read_try(step, number, now, stop))
        return Facts(now=now, tries=tuple(map(tuple, tries)), stop=stop, secrets_held=secrets_held)

    def is_over(self, step: int, number: int, *, now: Moment) -> bool:
        """Return whether a try has ended; cheaper than observing everything."""
        folder = self._root.try_folder(step, number)
        is_stopping = os.path.exists(self._root.stop)
        return os.path.exists(folder.exit) or not self._is_running((step, number), folder, now, is_stopping=is_stopping)

    def _read_stop(self) -> StopRequest | None:
        if self._stop is None:
            self._stop = stop_request_from_record(read_record(self._root.stop))
        return self._stop

    def _read_try(self, step: int, number: int, now: Moment, stop: StopRequest | None) -> Try:
        key = (step, number)
        if key in self._settled:
            return self._settled[key]
        folder = self._root.try_folder(step, number)
        started, _ = self._read_started(key, folder)
        # Liveness before exit.json: the shim writes it before it dies, so a dead try's exit cannot be missed.
        is_running = self._is_running(key, folder, now, is_stopping=stop is not None)
        verdict = verdict_from_record(read_record(folder.verdict))
        seen = Try(
            step=step,
            number=number,
            started=started,
            process=self._read_process(key, folder),
            stopping=stopping_from_record(read_record(folder.stopping)),
            verdict=verdict,
            settled=verdict is not None,
        )
        if verdict is not None:
            self._settled[key] = seen
            return seen
        ended = exit_from_record(read_record(folder.exit))
        if ended is None and is_running:
            return seen
        ended = ended or _unseen_exit(folder, now)
        if self._plan.steps[step].attach is not None:
            return seen._replace(verdict=self._judge_attached(step, ended, folder, stop, seen.stopping))
        expected = check_expected(self._root, self._plan.steps[step].expect)
        verdict = judge(ended, stop=stop, stopping=seen.stopping, expected=expected)
        return seen._replace(verdict=_with_error(verdict, folder))

    def _judge_attached(
        self, step: int, ended: Exit, folder: TryFolder, stop: StopRequest | None, stopping: Stopping | None
    ) -> Verdict:
        """Judge a training that somebody else started: nobody here knows its exit, so its files and its log decide."""
        expected = check_any(self._root, self._plan.steps[step].expect)
        verdict = judge(ended, stop=stop, stopping=stopping, expected=expected)
        if verdict.result == "stopped":
            return verdict
        from trackside.steps.last_error import read_fatal_error  # as in _with_error

        error = read_fatal_error(folder.log)
        return verdict if error is None else verdict._replace(result="failed", failure="unknown_exit", error=error)

    def _read_started(self, key: tuple[int, int], folder: TryFolder) -> tuple[Moment, Process | None]:
        if key not in self._started:
            record = read_record(folder.started) or {}
            moment = moment_from_record(record) or Moment(wall=_modified(folder.path), monotonic=0.0, boot_id="lost")
            self._started[key] = (moment, process_from_record(record.get("shim")))
        return self._started[key]

    def _is_running(self, key: tuple[int, int], folder: TryFolder, now: Moment, *, is_stopping: bool) -> bool:
        started, shim = self._read_started(key, folder)
        if started.boot_id != now.boot_id:
            return False
        attach = self._plan.steps[key[0]].attach
        if attach is not None:
            return _is_attached_running(attach, folder, now, is_stopping=is_stopping)
        process = self._read_process(key, folder)
        if process is None:
            return locks.is_locked(folder.started)
        # The step ends with its first process: what that left behind may still hold the lock.
        if is_alive(process, boot_id=now.boot_id):
            return True
        return shim is not None and is_alive(shim, boot_id=now.boot_id)

    def _read_process(self, key: tuple[int, int], folder: TryFolder) -> Process | None:
        if key not in self._processes:
            found = process_from_record(read_record(folder.process))
            if found is None:
                return None
            self._processes[key] = found
        return self._processes[key]


def _is_attached_running(attach: Attach, folder: TryFolder, now: Moment, *, is_stopping: bool) -> bool:
    """Whether somebody else's training runs. Unknown is not no: one without a known process ends only by a stop."""
    if attach.process is None:
        return not is_stopping
    return is_alive(attach.process, boot_id=now.boot_id) or locks.is_locked(folder.started)


def settle(root: Root, plan: Plan, facts: Facts) -> bool:
    """Write every verdict reached so far to disk; True if there was one. Any process may call it again.

    For a try that is not done it also kills leftover processes: they would hold the next try's GPU memory.
    """
    unsettled = [seen for tries in facts.tries for seen in tries if not seen.settled]
    ended = [(seen, seen.verdict) for seen in unsettled if seen.verdict is not None]
    for seen, verdict in ended:
        if plan.steps[seen.step].training:
            forget_training(root, seen.process)
        is_ours = plan.steps[seen.step].attach is None
        if verdict.result != "done" and seen.process is not None and is_ours:
            kill_leftovers(seen.process, boot_id=facts.now.boot_id)
        if verdict.result != "done" and plan.steps[seen.step].contained and plan.container is not None:
            remove(plan.container, container_of(root, seen.step, seen.number))
        write_record(root.try_folder(seen.step, seen.number).verdict, verdict.as_record(), durable=True)
    return bool(ended)


def running_try(facts: Facts) -> Try | None:
    return next((seen for tries in facts.tries for seen in tries if seen.is_running), None)


def forget_training(root: Root, process: Process | None) -> None:
    """Remove training.pid if it names this process."""
    try:
        with open(root.training_pid, encoding="ascii") as file:
            noted = file.read().strip()
    except (OSError, ValueError):
        return
    if process is not None and noted == str(process.pid):
        remove_file(root.training_pid)


def _with_error(verdict: Verdict, folder: TryFolder) -> Verdict:
    """Add the error in the log to the verdict. A try that was killed did not end by its own error."""
    if verdict.failure not in ("exit", "could_not_start") or verdict.signal is not None:
        return verdict
    from trackside.steps.last_error import read_last_error  # its patterns take a while: only when a try has failed

    found = read_last_error(folder.log, exit_code=verdict.exit_code)
    return verdict._replace(error=found.text, cannot_pass=found.cannot_pass and verdict.failure == "exit")


def _unseen_exit(folder: TryFolder, now: Moment) -> Exit:
    """An unknown exit, dated by the last write to the log."""
    ago = max(0.0, now.wall - (_modified(folder.log) or now.wall))
    ended = Moment(wall=now.wall - ago, monotonic=now.monotonic - ago, boot_id=now.boot_id)
    return Exit(code=None, signal=None, known=False, could_not_start=False, ended=ended)


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
