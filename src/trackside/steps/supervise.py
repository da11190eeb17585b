"""The supervisor: looks at the facts, decides, acts, and sleeps; it may be killed at any line and started again."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
import traceback
from typing import Any

# What a step or its recorder imports only when it needs it, now: home may replace the archive later.
import trackside.sampler.linux
import trackside.sampler.macos
import trackside.sampler.nvidia_smi
import trackside.sampler.nvml
import trackside.sampler.rocm_smi
import trackside.steps.last_error  # noqa: F401
from trackside.machine import clock
from trackside.machine.gpu import GpuProbe
from trackside.machine.locks import is_locked
from trackside.machine.process import is_alive
from trackside.records import unless_unwritable, write_record
from trackside.root import Root
from trackside.steps.decide import Action, EndTry, Finished, StartTry, Watch, decide
from trackside.steps.handover import discard_secrets, look_for_secrets
from trackside.steps.health import HealthProbe
from trackside.steps.launch import run_in_session
from trackside.steps.observe import Observer, running_try, settle
from trackside.steps.plan import Plan, read_plan
from trackside.steps.recorder_process import RecorderProcess
from trackside.steps.shim import run_shim
from trackside.steps.step_records import finished_record, step_records
from trackside.steps.stop import ask_to_end, force_to_end
from trackside.steps.supervisor_lock import supervisor_pid
from trackside.steps.time_marks import MarkWriter
from trackside.steps.tries import Facts, Try

_POLL_SECONDS = 0.2
_CALM_SECONDS = 1.0
_MARK_SECONDS = 1.0
_HEARTBEAT_SECONDS = 2.0
_PAUSE_AFTER_TROUBLE_SECONDS = 5.0


def supervise(root: Root) -> None:
    """Run the plan to its end, or until the job's folder is gone. The caller holds the supervisor's lock here."""
    supervisor = Supervisor(root, read_plan(root))
    child_ended = _wake_on_child()
    _log("supervisor %d started" % os.getpid())
    while True:
        if _has_lost_its_folder(root):
            _log("the job's folder was removed")
            return
        try:
            finished = supervisor.turn()
        except Exception:  # noqa: BLE001 - any failure here (a full disk) must not end the step's supervisor
            _log(traceback.format_exc())
            time.sleep(_PAUSE_AFTER_TROUBLE_SECONDS)
            continue
        if finished is not None:
            _log("finished: %s" % (finished,))
            supervisor.finish()
            return
        supervisor.wait(child_ended)


def _has_lost_its_folder(root: Root) -> bool:
    """Whether the folder was removed, or made anew with another supervisor: what is known here says nothing of it."""
    try:
        os.stat(root.supervisor_lock)
    except FileNotFoundError:
        return True
    except OSError:
        return False  # a disk in trouble may recover
    return supervisor_pid(root) not in (None, os.getpid())


class Supervisor:
    """Runs the plan turn by turn; all its state is on disk, except the secrets.

    On a disk that takes nothing it runs the plan to its end all the same, as far as that needs no further step.
    """

    def __init__(self, root: Root, plan: Plan) -> None:
        self._root = root
        self._plan = plan
        self._observer = Observer(root, plan)
        self._secrets: dict[str, str] = {}
        self._shim: tuple[int, StartTry] | None = None
        self._calm: Try | None = None
        self._not_before = 0.0
        self._published: Any = None
        self._marks: tuple[str, MarkWriter] | None = None
        self._marked_at = 0.0
        self._beat_at = 0.0
        self._unwritten: list[str] = []
        self._gpu = GpuProbe(root.gpu)
        self._health = HealthProbe(root, plan)
        self._recorder = RecorderProcess(root, plan)

    def turn(self) -> Finished | None:
        """Do the next action, if one is due; return how the plan finished, or None."""
        self._reap()
        arrived = look_for_secrets(self._root)
        self._secrets.update(arrived or {})
        facts = self._observe()
        problems: list[str] = []
        with unless_unwritable(problems):
            if settle(self._root, self._plan, facts):
                self._mark_ends(facts)
                facts = self._observe()
        action = decide(self._plan, facts)
        self._perform(action, facts)
        self._keep_watcher(action, facts)
        with unless_unwritable(problems):
            self._publish(facts, action)
        if arrived is not None and look_for_secrets(self._root) == arrived:  # else more came: the next turn reads it
            discard_secrets(self._root)  # only now: `start` takes their removal as the confirmation
        with unless_unwritable(problems):
            self._beat(facts)
        if problems and not self._unwritten:
            _log("cannot write: %s" % "; ".join(problems))
        self._unwritten = problems
        self._calm = action.running if isinstance(action, Watch) else None
        return action if isinstance(action, Finished) else None

    def wait(self, child_ended: int) -> None:
        """Sleep until there may be something to do: a child's exit wakes us, everything else is polled.

        While a step runs this costs almost nothing: our own shim's exit wakes us, and for a shim that an earlier
        supervisor started it is enough to check its process.
        """
        if self._calm is None:
            _sleep(child_ended, _POLL_SECONDS)
        elif self._shim is not None:
            _sleep(child_ended, _CALM_SECONDS)
        else:
            for _ in range(round(_CALM_SECONDS / _POLL_SECONDS)):
                _sleep(child_ended, _POLL_SECONDS)
                if self._calm.process is None or not is_alive(self._calm.process, boot_id=clock.boot_id()):
                    return

    def finish(self) -> None:
        """Wait for what runs beside the steps, but not for long. Nobody reads secrets that came meanwhile."""
        self._recorder.finish()
        discard_secrets(self._root)

    def _observe(self) -> Facts:
        return self._observer.observe(now=clock.now(), secrets_held=frozenset(self._secrets))

    def _perform(self, action: Action, facts: Facts) -> None:
        if isinstance(action, StartTry):
            self._start(action, facts)
        elif isinstance(action, EndTry):
            ask_to_end(self._root, self._plan, action.running, why=action.why)
            if action.force:
                force_to_end(self._root, self._plan, action.running)

    def _keep_watcher(self, action: Action, facts: Facts) -> None:
        """Start a new watcher of somebody else's training if it has lost its own."""
        if not isinstance(action, Watch) or self._plan.steps[action.running.step].attach is None:
            return
        seen = action.running
        if self._shim is None and not is_locked(self._root.try_folder(seen.step, seen.number).started):
            self._start(StartTry(step=seen.step, number=seen.number), facts)
            self._not_before = facts.now.monotonic + _PAUSE_AFTER_TROUBLE_SECONDS

    def _start(self, action: StartTry, facts: Facts) -> None:
        if self._shim is not None or facts.now.monotonic < self._not_before:
            return
        step = self._plan.steps[action.step]
        secrets = {name: self._secrets[name] for name in step.secrets}
        _log("step %s, try %d" % (step.name, action.number))
        shim = run_in_session("shim", lambda: run_shim(self._root, action.step, action.number), env=secrets)
        self._shim = (shim, action)
        self._recorder.begin(action.step, action.number)

    def _reap(self) -> None:
        """Reap a shim that ended. One that could not even start its try (disk full) is not repeated at once."""
        if self._shim is None:
            return
        pid, started = self._shim
        if os.waitpid(pid, os.WNOHANG)[0]:
            self._shim = None
            if not os.path.exists(self._root.try_folder(started.step, started.number).started):
                self._not_before = clock.seconds_since_boot() + _PAUSE_AFTER_TROUBLE_SECONDS

    def _publish(self, facts: Facts, action: Action) -> None:
        finished = action if isinstance(action, Finished) else None
        news = (facts.tries, facts.stop, facts.secrets_held, finished)
        if news == self._published:
            return
        record = {
            "format": 1,
            "supervisor": os.getpid(),
            "secrets_held": sorted(facts.secrets_held),
            "steps": step_records(self._plan, facts),
            "finished": finished_record(finished),
        }
        write_record(self._root.state, record)
        self._published = news

    def _beat(self, facts: Facts) -> None:
        running = running_try(facts)
        self._health.poll(facts, running_step=running.step if running else None)
        is_recorded = self._recorder.keep(running, moment=facts.now.monotonic)
        if running is not None and not is_recorded:
            self._gpu.poll(facts.now.monotonic)
        if facts.now.monotonic - self._marked_at < _MARK_SECONDS:
            return
        self._marked_at = facts.now.monotonic
        log_size = self._mark(running, facts.now.wall) if running is not None else 0
        if facts.now.monotonic - self._beat_at >= _HEARTBEAT_SECONDS:
            self._beat_at = facts.now.monotonic
            write_record(self._root.latest, self._heartbeat(running, facts, log_size))

    def _mark_ends(self, facts: Facts) -> None:
        """Date the last bytes of a log by the end of its try."""
        for seen in (seen for tries in facts.tries for seen in tries):
            if seen.verdict is not None and not seen.settled:
                self._mark(seen, seen.verdict.ended.wall)

    def _mark(self, seen: Try, wall: float) -> int:
        folder = self._root.try_folder(seen.step, seen.number)
        if self._marks is None or self._marks[0] != folder.path:
            self._marks = (folder.path, MarkWriter(log_path=folder.log, marks_path=folder.time_marks))
        return self._marks[1].note(wall)

    def _heartbeat(self, running: Try | None, facts: Facts, log_size: int) -> dict[str, Any]:
        return {
            **facts.now.as_record(),
            "step": self._plan.steps[running.step].name if running else None,
            "index": running.step if running else None,
            "try": running.number if running else None,
            "log_size": log_size,
        }


def _wake_on_child() -> int:
    """Return a descriptor that becomes readable when a child ends, so that no end waits for the next poll."""
    readable, writable = os.pipe()
    os.set_blocking(readable, False)
    os.set_blocking(writable, False)
    signal.set_wakeup_fd(writable, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return readable


def _sleep(child_ended: int, seconds: float) -> None:
    readable, _, _ = select.select([child_ended], [], [], seconds)
    if readable:
        os.read(child_ended, 4096)


def _log(text: str) -> None:
    try:
        print("%.3f %s" % (time.time(), text), file=sys.stderr, flush=True)
    except OSError:
        pass  # a full disk stops the log, not the supervisor
