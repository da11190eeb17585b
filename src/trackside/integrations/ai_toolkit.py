"""Records a training of ai-toolkit from outside: python3 -m trackside.integrations.ai_toolkit --database FILE …

ai-toolkit keeps two SQLite databases while it trains: the job database (`sqlite_db_path` of its config), whose row
shows what it is doing, and, with `logging.use_ui_logger`, `loss_log.db` in its output folder with the values of each
step. Both are only read here, so nothing in ai-toolkit changes.
"""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Sequence

from trackside.collector import Run

LOOK_SECONDS = 0.1  # a look costs two calls of stat, as long as nothing was written
_READ_SECONDS = 0.2
_ROWS_AT_ONCE = 1_000
# A file's time is as coarse as the system's tick: what was written within one tick looks the same.
_TICK_SECONDS = 0.05
_PHASES = {"Training": "training", "Saving model": "save", "Generating images": "sampling"}
_COLUMNS = {
    "loss/loss": "loss",
    "learning_rate": "lr",
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "batch_size": "batch_size",
}
_OPEN = float("inf")  # the end of a pause that goes on
_CONVERT = "import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1], encoding='utf-8')), sys.stdout)"


class Job(NamedTuple):
    """What ai-toolkit is doing, by its own row."""

    status: str
    info: str
    step: int  # as many are done

    @property
    def phase(self) -> str | None:
        """`training`, `save` or `sampling`; None before and after."""
        if self.status != "running":
            return None
        return next((phase for start, phase in _PHASES.items() if self.info.startswith(start)), None)


class StepRow(NamedTuple):
    """One step of the loss log."""

    number: int  # counts from 0
    at: float
    values: Dict[str, Optional[float]]


class Settings(NamedTuple):
    """What of ai-toolkit's config matters here."""

    config: Mapping[str, Any]
    batch_size: Optional[int]
    total_steps: Optional[int]
    every: int  # steps between two that are recorded

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Settings:
        process = _first_process(config)
        train = process.get("train") or {}
        datasets = process.get("datasets") or []
        is_one_size = bool(train) and not any("batch_size" in dataset for dataset in datasets)
        return cls(
            config=process,
            batch_size=_whole(train.get("batch_size", 1)) if is_one_size else None,
            total_steps=_whole(train.get("steps")),
            every=max(1, _whole(process.get("performance_log_every")) or 1),
        )


class Watch:
    """Hands a `Run` what is new in the databases: steps, and when sampling and saving begin and end."""

    def __init__(
        self, run: Run, database: Path, losses: Path, settings: Settings, *, job_id: str | None = None
    ) -> None:
        self._run, self._settings = run, settings
        self._database, self._losses, self._job_id = database, losses, job_id
        self._seen: tuple[float, ...] | None = None
        self._looked_at: float | None = None
        self._phase: str | None = None
        self._phase_step = self._step = 0
        self._has_run = self._has_started = self.has_ended = False
        self._row: StepRow | None = None
        self._batch_size = settings.batch_size
        self._pauses: list[tuple[float, float]] = []

    def look(self, now: float, *, is_last: bool = False) -> None:
        """Record what is new; `now` is the wall clock. Reads nothing if nothing was written since the last look."""
        written = _written(self._database, self._losses)
        if written == self._seen and not is_last:
            return
        # The rows first: what the trainer did before it wrote a row is then known too.
        rows = _read_rows(self._losses, after=-1 if self._row is None else self._row.number)
        job = _read_job(self._database, self._job_id)
        is_whole = job is not None and rows is not None and len(rows) < _ROWS_AT_ONCE
        self._seen = written if is_whole and now - max(written) > _TICK_SECONDS else None
        if job is not None:
            self._follow(job, self._change_time(written, now, rows or ()))
        for row in rows or ():
            self._record(row)
        self._looked_at = now

    def close(self) -> None:
        self._run.close()

    def _change_time(self, written: Sequence[float], now: float, rows: Sequence[StepRow]) -> float:
        """When the job's row changed: by its file's time, or by a row of the log that was written after it."""
        at = min(max(written[0], self._looked_at or written[0]), now)
        if self._pauses and self._pauses[-1][1] == _OPEN:
            began = self._pauses[-1][0]
            at = min([at, *(row.at for row in rows if row.at > began)])
        return at

    def _follow(self, job: Job, at: float) -> None:
        if job.status == "running":
            self._has_run = True
            self._step = max(self._step, job.step)
        phase = job.phase
        if phase != self._phase:
            self._leave(at)
            if phase == "training" and not self._has_started:
                self._has_started = True
                self._run.event("training_start", at=at, step=job.step, batch_size=self._batch_size)
            if phase in ("save", "sampling"):
                self._phase_step = job.step
                self._pauses.append((at, _OPEN))
                self._run.event(phase + "_start", at=at, step=job.step)
            self._phase = phase
        if job.status != "running" and self._has_run and not self.has_ended:
            self.has_ended = True
            self._run.event("training_end", at=at, step=self._step, status=job.status)

    def _leave(self, at: float) -> None:
        """End the phase that took time from the steps."""
        if self._phase in ("save", "sampling"):
            self._pauses[-1] = (self._pauses[-1][0], at)
            self._run.event(self._phase + "_end", at=at, step=self._phase_step)

    def _record(self, row: StepRow) -> None:
        before, self._row = self._row, row
        step = row.number + 1
        self._step = max(self._step, step)
        if "loss/loss" not in row.values:
            return  # a batch that was skipped for want of memory: nothing was trained
        batch_size = _whole(row.values.get("batch_size")) or self._batch_size
        if batch_size != self._batch_size:
            sizes = {"old_batch_size": self._batch_size, "new_batch_size": batch_size}
            self._run.event("batch_size_adjustment", at=row.at, step=step, **sizes)
            self._batch_size = batch_size
        seconds = self._step_time(before, row)
        if step % self._settings.every == 0:
            values: dict[str, Any] = {_COLUMNS.get(name, name): value for name, value in row.values.items()}
            values.update(step=step, batch_size=batch_size, at=row.at, step_time=seconds)
            self._run.step(**values)

    def _step_time(self, before: StepRow | None, row: StepRow) -> float | None:
        """Seconds per step since the row before, without those of sampling and saving."""
        if before is None:
            return None
        away = sum(max(0.0, min(end, row.at) - max(start, before.at)) for start, end in self._pauses)
        self._pauses = [pause for pause in self._pauses if pause[1] > row.at]
        return max(0.0, row.at - before.at - away) / max(1, row.number - before.number)


def record(
    database: Path,
    losses: Path,
    *,
    pid: int | None = None,
    config: Path | None = None,
    job_id: str | None = None,
    python: str | None = None,
) -> Watch:
    """Return what records the training of process `pid`; `python` has PyYAML, if this one lacks it."""
    settings = Settings.of({} if config is None else read_config(config, python))
    run = Run(config=settings.config, framework="ai-toolkit", total_steps=settings.total_steps, pid=pid)
    return Watch(run, database, losses, settings, job_id=job_id)


def read_config(file: Path, python: str | None = None) -> Mapping[str, Any]:
    """Return ai-toolkit's config; empty if it cannot be read. YAML needs PyYAML, in `python` or in this Python."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return {}
    except ValueError:
        found = _read_yaml(file, python or sys.executable)
    return found if isinstance(found, dict) else {}


def _read_yaml(file: Path, python: str) -> object:
    try:
        done = subprocess.run(
            [python, "-c", _CONVERT, str(file)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60
        )
        return json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _first_process(config: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        process = config["config"]["process"][0]
    except (KeyError, IndexError, TypeError):
        return {}
    return process if isinstance(process, dict) else {}


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, (int, float)) and value == value else None


def _written(database: Path, losses: Path) -> tuple[float, float]:
    """When each of the databases was last written."""
    return _last_written(database), _last_written(losses)


def _last_written(database: Path) -> float:
    times = [0.0]
    for suffix in ("", "-wal"):
        try:
            times.append(os.stat(str(database) + suffix).st_mtime)
        except OSError:
            continue
    return max(times)


def _read_job(database: Path, job_id: str | None) -> Job | None:
    """The job's row; None where it cannot be read at this moment."""
    found = _read_columns(database, job_id, "status, info, step")
    return None if found is None else Job(*found)


def _read_pid(database: Path, job_id: str | None) -> int | None:
    """The process that ai-toolkit's web interface started; None where there is no such column or process."""
    found = _read_columns(database, job_id, "pid")
    return None if found is None else found[0]


def _read_columns(database: Path, job_id: str | None, columns: str) -> tuple[Any, ...] | None:
    """Columns of the job's row, of the running one if no job is named; None where they cannot be read now."""
    which = ("WHERE id = ?", (job_id,)) if job_id is not None else ("ORDER BY status = 'running' DESC LIMIT 1", ())
    try:
        with closing(_reading(database)) as connection:
            found: tuple[Any, ...] | None
            found = connection.execute("SELECT %s FROM Job %s" % (columns, which[0]), which[1]).fetchone()
    except sqlite3.Error:
        return None
    return found


def _read_rows(losses: Path, *, after: int) -> list[StepRow] | None:
    """The steps after the number `after`; None where they cannot be read at this moment."""
    rows: dict[int, StepRow] = {}
    if not losses.exists():
        return []
    try:
        with closing(_reading(losses)) as connection:
            for number, at in connection.execute(
                "SELECT step, wall_time FROM steps WHERE step > ? ORDER BY step LIMIT ?", (after, _ROWS_AT_ONCE)
            ):
                rows[number] = StepRow(number, at, {})
            if rows:
                for number, key, value in connection.execute(
                    "SELECT step, key, value_real FROM metrics WHERE step BETWEEN ? AND ? AND value_text IS NULL",
                    (min(rows), max(rows)),
                ):
                    if number in rows:
                        rows[number].values[key] = value
    except sqlite3.Error:
        return None
    return list(rows.values())


def _reading(path: Path) -> sqlite3.Connection:
    return sqlite3.connect("%s?mode=ro" % path.absolute().as_uri(), uri=True, timeout=_READ_SECONDS)


def main(arguments: Sequence[str] | None = None) -> int:
    """Record until the training ends."""
    options = _parser().parse_args(arguments)
    pid = options.pid or _read_pid(options.database, options.job)
    watch = record(
        options.database,
        options.losses,
        pid=pid,
        config=options.config,
        job_id=options.job,
        python=options.python or None,
    )
    try:
        lives = True
        while lives:
            lives = not watch.has_ended and (pid is None or _lives(pid))
            watch.look(time.time(), is_last=not lives)
            time.sleep(LOOK_SECONDS if lives else 0)
    except KeyboardInterrupt:
        pass
    finally:
        watch.close()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python3 -m trackside.integrations.ai_toolkit", description=__doc__)
    parser.add_argument("--database", type=Path, required=True, help="the config's sqlite_db_path (aitk_db.db)")
    parser.add_argument("--losses", type=Path, required=True, help="loss_log.db in the training's output folder")
    parser.add_argument("--config", type=Path, help="the training's config, YAML or JSON")
    parser.add_argument("--job", help="the job's id in the database; needed if several run")
    parser.add_argument("--pid", type=int, help="the trainer's process, if the database does not name it")
    parser.add_argument("--python", default="", help="a Python that has PyYAML, if this one lacks it")
    return parser


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if __name__ == "__main__":
    sys.exit(main())
