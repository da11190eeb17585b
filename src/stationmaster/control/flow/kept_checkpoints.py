"""Checkpoints downloaded while the training ran: which is the best, and how an explanation names it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stationmaster.model import Collected, Job


def best_first(found: Iterable[Collected]) -> list[Collected]:
    """The furthest step first, without those that contain NaN."""
    sound = (one for one in found if not one.has_nan)
    return sorted(sound, key=lambda one: (one.step or 0, one.verified_at), reverse=True)


def checkpoint_note(job: Job) -> str:
    """The end of a sentence about a lost machine: which checkpoint is saved locally; empty for none."""
    best = next(iter(best_first(job.collection.checkpoints)), None)
    if best is None:
        return ""
    return "; the checkpoint " + (f"of step {best.step} " if best.step is not None else "") + "is saved locally"
