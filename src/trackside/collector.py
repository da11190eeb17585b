"""The collector of a training: `from trackside import Run`.

`step` puts its values into a journal in mapped memory and returns; a timer thread folds the journal into the run's
database. Nothing here raises into the training's loop, waits for a disk or starts a program.
"""

from __future__ import annotations

import atexit
import os
import sys
import time

from trackside.metrics.background import BackgroundWriter, note_once
from trackside.metrics.journal import MARK, STEP, STEP_LAYOUT, VOID, Journal
from trackside.metrics.schema import DEFAULT_NAME

TYPE_CHECKING = False  # without typing, which takes longer to import than all of this
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Iterator, Mapping

DATABASE, JOB, RECORDER = "TRACKSIDE_DATABASE", "TRACKSIDE_JOB", "TRACKSIDE_RECORDER"
DISABLED = "TRACKSIDE_DISABLED"
_RANKS = ("RANK", "LOCAL_RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
_SAMPLE_SECONDS = 5.0
_AWAY = {"sampling_start": "sampling_end", "save_start": "save_end"}
_OUT_OF_MEMORY = (
    "out of memory", "outofmemory", "not enough memory", "allocate memory", "status_alloc_failed", "resource_exhausted"
)  # fmt: skip
_NAN = float("nan")
_NO_STEP: tuple[Any, float] = (None, 0.0)
_NO_ROOM: tuple[Any, Iterator[int], float] = (None, iter(()), 0.0)

_wall, _clock, _pack_step = time.time, time.perf_counter, STEP_LAYOUT.pack_into


class Run:
    """One training. Use it as a context manager, or call `close` at the end."""

    def __init__(
        self,
        job_id: str | None = None,
        database: str | None = None,
        *,
        config: Mapping[str, Any] | None = None,
        framework: str | None = None,
        total_steps: int | None = None,
        rank: int | None = None,
        sample_seconds: float | None = None,
        pid: int | None = None,
    ) -> None:
        """Open the run. Job and database default to those of the job that trackside runs, else to this folder's.

        `config` is stored with each event. Of several processes only the one with rank 0 records steps; the rank
        comes from torch or the launcher's environment unless it is given. `sample_seconds`: interval at which this
        process samples memory and GPUs, 0 for never; by default it samples only if no recorder of trackside does.
        `pid`: the process that trains, and whose memory is sampled, if it is not this one. In a job whose monitoring is
        disabled nothing is recorded unless a database is given.
        """
        self._database = os.path.abspath(database or os.environ.get(DATABASE) or DEFAULT_NAME)
        self._job = job_id or os.environ.get(JOB) or "%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid())
        self._config = dict(config) if config else None
        self._rank = _own_rank() if rank is None else rank
        default = 0.0 if os.environ.get(RECORDER) or self._rank != 0 else _SAMPLE_SECONDS
        self._sample_seconds = default if sample_seconds is None else sample_seconds
        self._pid = pid
        self._is_closed = database is None and bool(os.environ.get(DISABLED))
        self._records_steps = self._rank == 0 and not self._is_closed
        # Few attributes, each read once in a step: between two steps a training fills the processor's caches.
        self._last: tuple[Any, float] = _NO_STEP
        self._room: tuple[Any, Iterator[int], float] = _NO_ROOM
        self._away_since: dict[str, float] = {}
        self._writer: BackgroundWriter | None = None
        if self._is_closed:
            return
        _RUNS.add(self)
        if self._rank == 0:
            self._begin(for_steps=True)  # at once, because it also folds what an earlier process left
        known = {"framework": framework, "total_steps": total_steps}
        if self._rank == 0 and any(value is not None for value in known.values()):
            self.info(**{name: value for name, value in known.items() if value is not None})

    @property
    def job_id(self) -> str:
        return self._job

    @property
    def database(self) -> str:
        return self._database

    def step(
        self,
        step: int,
        loss: float | None = None,
        lr: float | None = None,
        grad_norm: float | None = None,
        batch_size: int | None = None,
        *,
        at: float | None = None,
        step_time: float | None = None,
        **more: float,
    ) -> None:
        """Record a step. A tensor is converted by float(), which waits for the GPU: pass numbers that you have.

        The step's time is the time since the last one, without sampling and saving. `at`: when it was, by the wall
        clock, for steps that another process did. Any other number is recorded under its name.
        """
        place = None
        try:
            memory, places, offset = self._room
            if at is None:
                clock = _clock()
                wall = clock + offset
            else:
                wall = at
                clock = at - offset
            before, since = self._last
            self._last = (step, clock)
            if step_time is None:
                known = before is not None and step > before and clock >= since
                step_time = (clock - since) / (step - before) if known else _NAN
            place = next(places, None)
            if place is None:
                memory, place = self._more_room()
                if place is None:
                    return
            _pack_step(
                memory,
                place,
                STEP,
                -1 if batch_size is None else batch_size,
                step,
                wall,
                _NAN if loss is None else loss,
                _NAN if lr is None else lr,
                _NAN if grad_norm is None else grad_norm,
                step_time,
                MARK,
            )
            if more:
                self._append_values(step, wall, more)
        except Exception as problem:  # noqa: BLE001 - nothing may reach the training
            note_once("step %r: %s" % (step, problem))
            self._last = _NO_STEP  # the next one must not be compared with it
            if place is not None:
                _pack_readable(memory, place, step, wall, loss, lr, grad_norm, batch_size)

    def values(self, step: int, *, at: float | None = None, **values: float) -> None:
        """Record values of a step that `step` has recorded, such as those of a validation after it."""
        if not self._records_steps:
            return
        try:
            self._append_values(step, _wall() if at is None else at, values)
        except Exception as problem:  # noqa: BLE001 - nothing may reach the training
            note_once("values of step %r: %s" % (step, problem))

    def event(self, kind: str, *, at: float | None = None, **details: Any) -> None:
        """Record an event, such as oom_error or save_start, with the last step, the config and a sample of memory."""
        try:
            wall = _wall() if at is None else at
            self._count_away(kind, wall)
            if self._last[0] is not None:
                details.setdefault("step", self._last[0])
            if self._config is not None:
                details.setdefault("config", self._config)
            from trackside.metrics.fold import event_record

            self._append(event_record(kind, wall, details), at_once=True)
        except Exception as problem:  # noqa: BLE001 - nothing may reach the training
            note_once("event %s: %s" % (kind, problem))

    def image(self, path: str | os.PathLike[str], step: int | None = None) -> None:
        """Record that the training made a picture."""
        where = {} if step is None else {"step": step}
        self.event("image", path=os.fspath(path), **where)

    def info(self, **values: Any) -> None:
        """Record facts of the whole run, such as total_steps; a later value replaces an earlier one."""
        try:
            from trackside.metrics.fold import info_record

            self._append(info_record(values), at_once=False)
        except Exception as problem:  # noqa: BLE001 - nothing may reach the training
            note_once("info: %s" % problem)

    def close(self) -> None:
        """Fold everything into the database and stop recording. May be called more than once."""
        if self._is_closed:
            return
        self._is_closed = True
        self._records_steps = False
        self._room = _NO_ROOM
        _RUNS.discard(self)
        writer, self._writer = self._writer, None
        if writer is not None:
            try:
                writer.close()
            except Exception as problem:  # noqa: BLE001 - nothing may reach the training
                note_once(str(problem))

    def __enter__(self) -> Run:
        self.event("training_start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if problem is not None and is_out_of_memory(problem):
            self.event("oom_error", message=str(problem)[:2000])
        self.event("training_end")
        self.close()

    def _begin(self, *, for_steps: bool = False) -> None:
        """Open the journal and start its thread; where even that fails nothing is recorded."""
        try:
            self._writer = BackgroundWriter(
                self._database, self._job, sample_seconds=self._sample_seconds, pid=self._pid
            )
            if for_steps:
                self._writer.journal.open_for_steps()
                self._take_room(self._writer.journal)
        except Exception as problem:  # noqa: BLE001 - nothing may reach the training
            self._records_steps = False
            note_once("nothing is recorded: %s" % problem)

    def _take_room(self, journal: Journal) -> None:
        """Use the journal's current segment for steps, and what the wall clock is ahead of ours now."""
        self._room = (*journal.step_room, _wall() - _clock())

    def _more_room(self) -> tuple[Any, int | None]:
        """Return memory and offset for one step where the current segment has none; no offset if there is none."""
        if not self._records_steps:
            return None, None
        if self._writer is None:
            self._begin(for_steps=True)
        if self._writer is None:
            return None, None
        found = self._writer.journal.more_step_room()
        self._take_room(self._writer.journal)
        return found

    def _continue_in_child(self) -> None:
        """Forget the parent's journal after a fork; the child opens its own when it records something."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.abandon()
        self._room = _NO_ROOM

    def _append(self, record: dict[str, Any], *, at_once: bool) -> None:
        if self._writer is None and not self._is_closed:
            self._begin()
        if self._writer is not None:
            self._writer.append(record, at_once=at_once)

    def _append_values(self, step: int, wall: float, values: Mapping[str, Any]) -> None:
        from trackside.metrics.fold import step_record

        known = {name: number for name, value in values.items() if (number := _number(value)) is not None}
        self._append(step_record(step, wall, known), at_once=False)

    def _count_away(self, kind: str, wall: float) -> None:
        """Leave the time of sampling and saving out of the next step's: as if the last one had been later."""
        if kind in _AWAY:
            self._away_since[_AWAY[kind]] = wall
        elif kind in self._away_since:
            step, since = self._last
            self._last = (step, since + max(0.0, wall - self._away_since.pop(kind)))


def is_out_of_memory(problem: BaseException) -> bool:
    """Return whether an exception means that memory of the GPU or the machine ran out."""
    text = "%s %s" % (type(problem).__name__, problem)
    return isinstance(problem, MemoryError) or any(words in text.lower() for words in _OUT_OF_MEMORY)


def _own_rank() -> int:
    """Return this process's rank among those of the training: from torch if it knows, else from the launcher."""
    distributed = sys.modules.get("torch.distributed")
    try:
        if distributed is not None and distributed.is_available() and distributed.is_initialized():
            return int(distributed.get_rank())
    except Exception as problem:  # noqa: BLE001 - nothing may reach the training
        note_once("the rank is not known to torch: %s" % problem)
    for name in _RANKS:
        text = os.environ.get(name, "")
        if text.isdigit():
            return int(text)
    return 0


def _number(value: Any) -> float | None:
    """Return a finite number; None for anything else."""
    try:
        number = float(value)
    except Exception:  # noqa: BLE001 - a value may be of any type
        return None
    return number if number - number == 0 else None


def _pack_readable(memory: Any, place: int, step: Any, wall: Any, *values: Any) -> None:
    """Record what can be recorded of a step with a value that is no number; without a number it counts as none.

    Its place must not stay empty: a fold would wait for it.
    """
    number, at, loss, lr, grad_norm, batch_size = (_number(value) for value in (step, wall, *values))
    known = (_NAN if value is None else value for value in (loss, lr, grad_norm))
    kind = VOID if number is None or abs(number) >= 2**63 else STEP
    size = -1 if batch_size is None or abs(batch_size) >= 2**31 else int(batch_size)
    whole = 0 if number is None or kind == VOID else int(number)
    _pack_step(memory, place, kind, size, whole, _wall() if at is None else at, *known, _NAN, MARK)


def _pause_all() -> None:
    for run in list(_RUNS):
        if run._writer is not None:
            run._writer.pause()


def _start_all() -> None:
    for run in list(_RUNS):
        if run._writer is not None:
            run._writer.start()


def _continue_all_in_child() -> None:
    for run in list(_RUNS):
        run._continue_in_child()


def _close_all() -> None:
    for run in list(_RUNS):
        run.close()


_RUNS: set[Run] = set()  # the open ones
os.register_at_fork(before=_pause_all, after_in_parent=_start_all, after_in_child=_continue_all_in_child)
atexit.register(_close_all)
