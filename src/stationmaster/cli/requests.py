"""Waiting for what a training was asked for, and telling what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from stationmaster.model import Request

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # with every noun, of which these commands need few

_MADE = {Request.SAVE: "saved", Request.SAMPLE: "made"}
_NOT_MADE = {
    "timed_out": "the training did not do it in time",
    "not_running": "the training does not run any more",
    "refused": "the training could not be asked",
    "impossible": "the training does not know how",
}


def awaited_answer(station: Station, job_id: str, request: Request, number: int) -> Mapping[str, Any] | None:
    """What came of the request, once it has; None where the job ended before."""
    for _ in station.jobs.watch(job_id):
        for event in station.events.of_job(job_id):
            if event.kind == f"{request.value}_ended" and event.payload.get("number", 0) >= number:
                return event.payload
    return None


def answer_lines(job_id: str, request: Request, answer: Mapping[str, Any] | None) -> list[str]:
    """The same for a person to read."""
    if answer is None:
        return [f"{job_id}: the job ended before it was done"]
    if not answer["files"]:
        said = _NOT_MADE.get(answer["state"], answer["state"])
        return [f"{job_id}: {said}" + (f": {answer['problem']}" if answer.get("problem") else "")]
    shown = answer.get("places") or answer["files"]
    return [f"{job_id}: {_MADE[request]} {place}" for place in shown]
