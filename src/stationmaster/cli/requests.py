"""`save`, `sample`: requests to a running training."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import (
    JobArgument,
    JsonOption,
    options_of,
    print_document,
    print_lines,
    print_note,
    station_of,
)
from stationmaster.model import Request

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; these commands need few

_MADE = {Request.SAVE: "saved", Request.SAMPLE: "made"}
_NOT_MADE = {
    "timed_out": "the training did not answer in time",
    "not_running": "the training is no longer running",
    "refused": "the training could not be asked",
    "impossible": "the training does not support this",
}

WaitOption = Annotated[bool, typer.Option("--wait", help="Wait for the result and print it.")]


def save(context: typer.Context, job: JobArgument, wait: WaitOption = False, as_json: JsonOption = False) -> None:
    """Have a running training write a checkpoint now.

    The checkpoint is downloaded; the training continues.

    Examples:

      stationmaster save 7f3k2q9a

      stationmaster save cats --wait
    """
    _send_request(context, job, Request.SAVE, wait=wait, as_json=as_json)


def sample(context: typer.Context, job: JobArgument, wait: WaitOption = False, as_json: JsonOption = False) -> None:
    """Have a running training make samples now.

    The samples are downloaded; the training continues.

    Examples:

      stationmaster sample 7f3k2q9a

      stationmaster sample cats --wait
    """
    _send_request(context, job, Request.SAMPLE, wait=wait, as_json=as_json)


def _send_request(context: typer.Context, reference: str, request: Request, *, wait: bool, as_json: bool) -> None:
    with station_of(context) as station:
        wanted = station.jobs.ask(station.jobs.find(reference).id, request)
        if not wait:
            return print_note(context, wanted.job.id, wanted.note, as_json=as_json)
        answer = _wait_for_answer(station, wanted.job.id, request, wanted.job.times_asked(request))
        if as_json or options_of(context).as_json:
            from stationmaster.cli.answers import AnsweredRequest, RequestAnswer

            found = None if answer is None else RequestAnswer.model_validate(answer)
            print_document(AnsweredRequest(id=wanted.job.id, note=wanted.note, answer=found))
        else:
            print_lines(_answer_lines(wanted.job.id, request, answer))
        if answer is None or not answer.get("files"):
            raise typer.Exit(1)
    return None


def _wait_for_answer(station: Station, job_id: str, request: Request, number: int) -> Mapping[str, Any] | None:
    """The result of the request; None if the job ended before."""
    for _ in station.jobs.watch(job_id):
        for event in station.events.of_job(job_id):
            if event.kind == f"{request.value}_ended" and event.payload.get("number", 0) >= number:
                return event.payload
    return None


def _answer_lines(job_id: str, request: Request, answer: Mapping[str, Any] | None) -> list[str]:
    if answer is None:
        return [f"{job_id}: the job ended first"]
    if not answer["files"]:
        problem = _NOT_MADE.get(answer["state"], answer["state"])
        return [f"{job_id}: {problem}" + (f": {answer['problem']}" if answer.get("problem") else "")]
    places = answer.get("places") or answer["files"]
    return [f"{job_id}: {_MADE[request]} {place}" for place in places]
