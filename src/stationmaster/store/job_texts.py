"""The JSON columns of a job, kept with the objects they were made from, so that a write encodes only what changed."""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter, is_
from typing import Any, NamedTuple

from stationmaster.model import Job, Progress
from stationmaster.store.attempt_codec import PARTS, attempt_to_json, part_to_json
from stationmaster.store.codec import progress_to_text
from stationmaster.store.json_text import dumps

_made_of = attrgetter(*PARTS, "unread")


class Texts(NamedTuple):
    progress: tuple[Progress, str]
    made_of: tuple[Any, ...]  # the parts of the attempt; `memory` is their JSON
    memory: str
    parts: Mapping[str, tuple[Any, str]]  # each with its JSON without braces; only those encoded so far


def texts_as_read(job: Job, *, progress: str, memory: str) -> Texts:
    return Texts((job.progress, progress), _made_of(job), memory, {})


def texts_of(job: Job, known: Texts | None) -> Texts:
    """The texts for a job, reusing those of an earlier write where nothing has changed.

    Parts are frozen, so the identical object has the identical JSON.
    """
    if known is None:
        return Texts((job.progress, progress_to_text(job.progress)), *_memory_of(job, {}))
    progress = known.progress
    if job.progress is not progress[0]:
        progress = (job.progress, progress_to_text(job.progress))
    if all(map(is_, _made_of(job), known.made_of)):
        return known if progress is known.progress else known._replace(progress=progress)
    return Texts(progress, *_memory_of(job, known.parts))


def _memory_of(
    job: Job, known: Mapping[str, tuple[Any, str]]
) -> tuple[tuple[Any, ...], str, Mapping[str, tuple[Any, str]]]:
    made_of = _made_of(job)
    if job.unread:  # rare, and a part may have a key of the same name
        return made_of, dumps(attempt_to_json(job)), known
    parts = {
        name: found
        if (found := known.get(name)) is not None and found[0] is part
        else (part, dumps(part_to_json(name, part))[1:-1])
        for name, part in zip(PARTS, made_of, strict=False)
    }
    return made_of, "{" + ",".join([text for _, text in parts.values() if text]) + "}", parts
