"""Which of the files that a machine lists count: those that the recipe declares, with safe names.

A rented machine is not trusted. A file name from it must not lead out of the job's local folder, must not contain
control characters for a terminal, and is a model only if the recipe declares files of that name as models.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath

from stationmaster.model import Checkpoint, Job, OutputFile
from stationmaster.model.copying import changed
from stationmaster.model.intake_limits import OUTPUT_FILES
from stationmaster.recipes.outputs import output_of, step_of
from stationmaster.recipes.schema import Output
from stationmaster.store.writes import NewEvent

_LONGEST_PATH = 1024
_MOST_SHOWN = 5
_NOT_SHOWN = frozenset({"Cc", "Cs", "Zl", "Zp"})  # control characters, surrogates, line ends
_BIDI_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # they reverse the displayed text


def declared(files: Iterable[OutputFile], outputs: Sequence[Output]) -> tuple[OutputFile, ...]:
    """The files that count, each with the kind that the recipe gives it, not the one that the machine reports."""
    found = ((file, output_of(file.path, outputs)) for file in files if has_safe_name(file.path))
    return tuple(changed(file, kind=output.kind.value) for file, output in found if output is not None)


def refused_events(files: Sequence[OutputFile], outputs: Sequence[Output]) -> tuple[NewEvent, ...]:
    """The event of files that do not count; an honest machine never lists any."""
    counted = {file.path for file in declared(files, outputs)}
    refused = sorted({file.path for file in files} - counted)
    if not refused:
        return ()
    shown = [ascii(path[:_LONGEST_PATH]) for path in refused[:_MOST_SHOWN]]
    return (NewEvent(kind="files_refused", payload={"files": shown, "count": len(refused)}),)


def left_out_events(count: int, *, cap_bytes: int) -> tuple[NewEvent, ...]:
    """The event of declared files that are not downloaded: there are too many, or they are too large together."""
    if not count:
        return ()
    payload = {"count": count, "most_files": OUTPUT_FILES, "cap_bytes": cap_bytes}
    return (NewEvent(kind="files_left_out", payload=payload),)


def checkpoint_of(job: Job, file: OutputFile, outputs: Sequence[Output]) -> Checkpoint:
    """The row of a file that counts; its step comes from its name."""
    return Checkpoint(
        attempt=job.attempt,
        path=file.path,
        kind=file.kind,
        size=file.size,
        step=step_of(file.path, outputs, offset=job.watching.step_offset),
        sha256=file.sha256,
    )


def has_safe_name(path: str) -> bool:
    """Whether the name stays inside the job's folder and can be displayed as it is."""
    parts = PurePosixPath(path).parts
    inside = bool(parts) and ".." not in parts and not path.startswith("/")
    return inside and len(path) <= _LONGEST_PATH and not any(map(_is_unsafe, path))


def _is_unsafe(character: str) -> bool:
    return character in _BIDI_MARKS or unicodedata.category(character) in _NOT_SHOWN
