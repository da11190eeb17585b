"""The status: everything that home wants to know about a job, computed from files alone."""

from __future__ import annotations

import binascii
import json
from typing import Any, Mapping, NamedTuple

from trackside import __version__
from trackside.errors import Misuse
from trackside.machine import clock
from trackside.machine.process import is_alive
from trackside.machine.readings import read_disk
from trackside.records import read_record
from trackside.report.leftovers import fold_leftovers_of_dead
from trackside.report.log_chunks import Chunk, Position, parse_positions, read_new
from trackside.report.machine import read_machine
from trackside.report.outputs import MOST_FILES, list_outputs, most_wanted_first
from trackside.report.series import parse_rows_read, read_series
from trackside.root import Root, stream_name
from trackside.steps.decide import Finished, decide, secrets_needed
from trackside.steps.handover import look_for_secrets
from trackside.steps.monitored_step import database_of, job_of, monitored_step
from trackside.steps.observe import Observer, running_try
from trackside.steps.plan import Plan
from trackside.steps.step_records import finished_record, step_records
from trackside.steps.supervisor_lock import is_supervised, supervisor_pid
from trackside.steps.time_marks import read_marks
from trackside.steps.tries import Facts

DEFAULT_MAX_BYTES = 1 << 20
_FORMAT = 1
_MARKS_PER_STREAM = 128
_MARKS_APART_SECONDS = 30.0  # fine beside the windows of the stall watch; each keeps a redraw for home to read
_STREAM_OVERHEAD_BYTES = 256 + 40 * _MARKS_PER_STREAM
_SMALLEST_READ_BYTES = 1024  # even when the rest of the answer is too long: home must make progress


class Since(NamedTuple):
    """What home has seen already, and the seconds between time marks that it wants for the rest."""

    log: dict[str, Position]
    series: Mapping[str, int] = {}
    grain_seconds: float = _MARKS_APART_SECONDS


def parse_since(text: str | None) -> Since:
    """Parse the argument of --since. Raises Misuse if it is not a JSON object."""
    if text is None:
        return Since(log={})
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Misuse("--since is not a JSON object")
    grain = found.get("grain")
    return Since(
        log=parse_positions(found.get("log")),
        series=parse_rows_read(found.get("series")),
        grain_seconds=float(grain) if isinstance(grain, (int, float)) else _MARKS_APART_SECONDS,
    )


def build_status(
    root: Root,
    plan: Plan,
    *,
    since: Since | None,
    with_series: bool = True,
    max_bytes: int = DEFAULT_MAX_BYTES,
) -> dict[str, Any]:
    """Return the status object; `since` None leaves log and series out. Its JSON stays within `max_bytes`.

    When the plan has finished, the series are always there.
    """
    now = clock.now()
    supervised = is_supervised(root)
    pid = supervisor_pid(root)
    facts = Observer(root, plan).observe(now=now, secrets_held=_secrets_held(root, pid) if supervised else frozenset())
    action = decide(plan, facts)
    answer = {
        "format": _FORMAT,
        "version": __version__,
        **now.as_record(),
        "started": pid is not None,
        "supervisor": {"alive": supervised, "pid": pid if supervised else None},
        "steps": step_records(plan, facts),
        "finished": finished_record(action if isinstance(action, Finished) else None),
        "training_alive": _is_training_alive(plan, facts),
        "needs_secrets": list(secrets_needed(plan, facts)),
        "heartbeat": (read_record(root.latest) or {}).get("wall"),
        "log": [],
        "more": False,
        "series": [],
        **read_machine(root, plan, wall=now.wall),
        "health": read_record(root.health),
        "disk": read_disk(root.path),
    }
    _add_outputs(answer, list_outputs(root, plan), room_bytes=max_bytes // 2)
    if since is not None and (with_series or isinstance(action, Finished)):
        _add_series(answer, root, plan, since, room_bytes=max_bytes // 4)
    if since is not None:
        _add_log(answer, root, since, max_bytes=max_bytes)
    return answer


def next_since(since: Since, answer: dict[str, Any]) -> Since:
    """Return what home has seen after this answer."""
    seen = {entry["stream"]: Position(inode=entry["inode"], offset=entry["end"]) for entry in answer["log"]}
    read = {entry["table"]: entry["last"] for entry in answer["series"]}
    return since._replace(log={**since.log, **seen}, series={**since.series, **read})


def _secrets_held(root: Root, pid: int | None) -> frozenset[str]:
    """Return the names of the secrets that the living supervisor has or is about to find."""
    state = read_record(root.state) or {}
    held = state.get("secrets_held", []) if state.get("supervisor") == pid else []
    return frozenset([*held, *(look_for_secrets(root) or {})])


def _is_training_alive(plan: Plan, facts: Facts) -> bool:
    running = running_try(facts)
    if running is None or running.process is None or not plan.steps[running.step].training:
        return False
    return is_alive(running.process, boot_id=facts.now.boot_id)


def _add_outputs(answer: dict[str, Any], outputs: list[dict[str, Any]], *, room_bytes: int) -> None:
    """Add as many outputs as fit, models and the newest first when not all do."""
    answer["outputs"] = outputs
    if len(outputs) <= MOST_FILES and len(json.dumps(outputs)) <= room_bytes:
        return
    kept, used = [], 2
    for output in most_wanted_first(outputs)[:MOST_FILES]:
        used += len(json.dumps(output)) + 2
        if used > room_bytes:
            break
        kept.append(output)
    answer["outputs"] = sorted(kept, key=lambda entry: entry["path"])
    answer["outputs_left_out"] = len(outputs) - len(kept)


def _add_series(answer: dict[str, Any], root: Root, plan: Plan, since: Since, *, room_bytes: int) -> None:
    step = monitored_step(plan)
    if step is None:
        return
    database = database_of(root, step)
    is_complete = fold_leftovers_of_dead(
        root, database, ended=(answer["finished"] or {}).get("at"), wall=answer["wall"]
    )
    found = read_series(database, job_of(plan, step), since.series, room_bytes=room_bytes)
    answer["series"] = found.entries
    answer["more"] = found.more or not is_complete


def _add_log(answer: dict[str, Any], root: Root, since: Since, *, max_bytes: int) -> None:
    room = max_bytes - len(json.dumps(answer)) - 64
    for step, number in root.tries():
        stream = stream_name(step, number)
        folder = root.try_folder(step, number)
        limit = max(_SMALLEST_READ_BYTES, (room - _STREAM_OVERHEAD_BYTES) * 3 // 4 - 4)
        is_full = bool(answer["log"]) and room < _STREAM_OVERHEAD_BYTES + 2 * _SMALLEST_READ_BYTES
        chunk = read_new(folder.log, since.log.get(stream), limit_bytes=1 if is_full else limit)
        if chunk is None:
            continue
        if is_full:
            answer["more"] = True
            return
        entry = _log_entry(stream, chunk, folder.time_marks, grain_seconds=since.grain_seconds)
        answer["log"].append(entry)
        room -= len(json.dumps(entry)) + 2
        if not chunk.is_last:
            answer["more"] = True
            return


def _log_entry(stream: str, chunk: Chunk, marks_path: str, *, grain_seconds: float) -> dict[str, Any]:
    """Return the chunk with thinned redraws; `times` has when how much of its data had been written."""
    from trackside.report.thinning import thin_redraws  # its patterns take a while: only when needed

    marks = read_marks(
        marks_path, start=chunk.start, end=chunk.end, limit=_MARKS_PER_STREAM, apart_seconds=grain_seconds
    )
    data, places = thin_redraws(chunk.data, [mark.length - chunk.start for mark in marks])
    return {
        "stream": stream,
        "inode": chunk.inode,
        "start": chunk.start,
        "end": chunk.end,
        "restarted": chunk.restarted,
        "data": binascii.b2a_base64(data, newline=False).decode("ascii"),
        "times": [[place, round(marks[index].wall, 3)] for index, place in enumerate(places)],
    }
