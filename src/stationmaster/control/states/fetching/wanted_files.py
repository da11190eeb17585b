"""Which of a machine's files are downloaded, and in which order: the best model first. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from stationmaster.errors import TransferFailed
from stationmaster.model import Checkpoint, Job, OutputFile, Reason
from stationmaster.recipes.schema import OutputKind


def steady_files(files: Sequence[OutputFile]) -> list[OutputFile]:
    """Files that did not change while they were hashed. Raises TransferFailed if all models were being written."""
    hashed = [file for file in files if file.sha256 is not None]
    models = [file for file in files if file.kind == OutputKind.CHECKPOINT]
    if models and not any(file.kind == OutputKind.CHECKPOINT for file in hashed):
        raise TransferFailed(f"{models[0].path} was still being written")
    return hashed


def wanted_files(files: Iterable[OutputFile], job: Job, checkpoints: Sequence[Checkpoint]) -> list[OutputFile]:
    """The model first, then samples and logs. Of several checkpoints only the best: the final one, else the latest.

    Last the state that the trainer needs to resume, unless it has finished.
    """
    files = list(files)
    others = [file for file in files if file.kind not in (OutputKind.CHECKPOINT, OutputKind.STATE)]
    states = [file for file in files if file.kind == OutputKind.STATE and not _has_finished(job)]
    ordered = (sorted(some, key=lambda file: file.path) for some in (others, states))
    return [*ranked_models(files, job, checkpoints)[:1], *chain.from_iterable(ordered)]


def within_cap(files: Sequence[OutputFile], *, cap_bytes: int) -> tuple[tuple[OutputFile, ...], int]:
    """The files, in their order, as far as they fit together, and how many do not.

    Raises TransferFailed if the model itself does not: then its machine keeps it.
    """
    chosen, room = [], cap_bytes
    for file in files:
        if file.size <= room:
            chosen.append(file)
            room -= file.size
        elif file.kind == OutputKind.CHECKPOINT:
            raise TransferFailed(
                f"{file.path} has {file.size:,} bytes; artifacts.cap_bytes allows {cap_bytes:,}",
                hint="raise artifacts.cap_bytes, then run `stop` again",
            )
    return tuple(chosen), len(files) - len(chosen)


def further_checkpoints(
    models: Sequence[OutputFile], job: Job, checkpoints: Sequence[Checkpoint], *, keep: int
) -> list[OutputFile]:
    """As many checkpoints beside the model as are kept of a long run, the best first, without those that are here.

    A run that ends before its first checkpoint was due has none here.
    """
    by_path = {checkpoint.path: checkpoint for checkpoint in checkpoints}
    sound = [file for file in models[1:] if not is_spoilt(by_path.get(file.path), job)]
    return [file for file in sound[:keep] if by_path[file.path].location is None]


def _has_finished(job: Job) -> bool:
    return job.ending.reason is Reason.FINISHED


def ranked_models(files: Iterable[OutputFile], job: Job, checkpoints: Sequence[Checkpoint]) -> list[OutputFile]:
    """Every checkpoint, the best first; those that were saved after the loss became NaN come last."""
    by_path = {checkpoint.path: checkpoint for checkpoint in checkpoints}
    models = best_models_first((file for file in files if file.kind == OutputKind.CHECKPOINT), by_path)
    return sorted(models, key=lambda file: is_spoilt(by_path.get(file.path), job))


def is_spoilt(checkpoint: Checkpoint | None, job: Job) -> bool:
    """Whether it was saved after the loss became NaN."""
    spoilt_at = job.watching.spoilt_at
    return spoilt_at is not None and checkpoint is not None and (checkpoint.step or 0) >= spoilt_at


def best_models_first(models: Iterable[OutputFile], checkpoints: dict[str, Checkpoint]) -> list[OutputFile]:
    """Models from best to worst: one without a step in its name is final; otherwise a later step is better."""

    def rank(file: OutputFile) -> tuple[bool, int, float]:
        step = checkpoints[file.path].step if file.path in checkpoints else None
        return (step is None, step or 0, file.mtime)

    return sorted(models, key=rank, reverse=True)
