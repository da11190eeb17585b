"""Events, logs and readings: in pages, or as live streams for who accepts text/event-stream."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response

from stationmaster.api.live.history_so_far import reader_of
from stationmaster.api.live.hub import Hub
from stationmaster.api.live.stream import MEDIA_TYPE, LiveStream
from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import Exact, JobReference, job_id
from stationmaster.api.visit import Reading, Visit
from stationmaster.errors import UserError
from stationmaster.station.news import ALL_EVENTS, Topic, TopicKind
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.events import EventDocument
from stationmaster.station.wire.history import (
    HistoryPage,
    LogDocument,
    LogMatchDocument,
    LossTrendDocument,
    ReadingDocument,
    read_page,
)

_STREAM = (
    "With `Accept: text/event-stream` this is a live stream: first what follows `Last-Event-ID` or `after`, then what "
    "is new. The id of each message is where to continue after a lost connection. A comment comes every 15 seconds. "
)
_JOB_STREAM = _STREAM + "The stream of a job that has ended closes after a message `end`: do not open it again."
_ALL_STREAM = _STREAM + (
    "Without either it begins with what happens next. After a lost connection some events of the last minute may come "
    "again: the job and its version identify an event."
)
_LATE_SECONDS = 60.0  # an event may become visible that long after one with a higher number
_LARGEST = 10**18 - 1

routes = APIRouter(prefix="/api", tags=["history"], responses=problems(400, 401, 403, 404, 422))

After = Annotated[
    int | None, Query(ge=0, le=_LARGEST, description="Only what follows this number: `next` or `cursor` of a page.")
]
LastEventId = Annotated[
    str | None,
    Header(pattern="^[0-9]{1,18}$", description="Where a live stream continues; sent by browsers that reconnect."),
]


def _live(description: str) -> dict[str, Any]:
    """How a route that also streams is described."""
    content = {MEDIA_TYPE: {"schema": {"type": "string"}}}
    return {"description": description, "responses": {200: {"content": content}, **problems(429)}}


@routes.get("/events", operation_id="list_events", summary="Events of all jobs, oldest first", **_live(_ALL_STREAM))
def list_events(
    request: Request,
    visit: Reading,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many.")] = 500,
    last_event_id: LastEventId = None,
) -> HistoryPage[EventDocument]:
    if _wants_stream(request):
        return _stream(request, visit, ALL_EVENTS, after, last_event_id)  # type: ignore[return-value]
    found = visit.station.events.after(after or 0, limit=limit)
    old = visit.station.now() - _LATE_SECONDS
    settled = max((event.seq for event in found if event.at < old), default=after or 0)
    return HistoryPage(
        items=tuple(EventDocument.of(event) for event in found),
        next=str(found[-1].seq) if len(found) == limit else None,
        cursor=str(settled),
    )


@routes.get(
    "/jobs/{job}/events",
    operation_id="list_job_events",
    summary="What happened to a job, oldest first",
    **_live(_JOB_STREAM),
)
def list_job_events(
    request: Request,
    visit: Reading,
    job: JobReference,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many.")] = 500,
    exact: Exact = False,
    last_event_id: LastEventId = None,
) -> HistoryPage[EventDocument]:
    found_id = job_id(visit, job, exact)
    if _wants_stream(request):
        return _stream(request, visit, Topic(TopicKind.EVENTS, found_id), after or 0, last_event_id)  # type: ignore[return-value]
    found = visit.station.events.of_job(found_id, after_version=after or 0, limit=limit)
    last = found[-1].job_version if found else after or 0
    items = tuple(EventDocument.of(event) for event in found)
    return HistoryPage(items=items, next=str(last) if len(found) == limit else None, cursor=str(last))


@routes.get(
    "/jobs/{job}/logs", operation_id="list_logs", summary="A job's log in pieces, oldest first", **_live(_JOB_STREAM)
)
def list_logs(
    request: Request,
    visit: Reading,
    job: JobReference,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many pieces, and about 8 MB.")] = 100,
    latest: Annotated[bool, Query(description="The last ones, whatever `after` is; not for a live stream.")] = False,
    exact: Exact = False,
    last_event_id: LastEventId = None,
) -> HistoryPage[LogDocument]:
    found_id = job_id(visit, job, exact)
    if _wants_stream(request):
        return _stream(request, visit, Topic(TopicKind.LOGS, found_id), after or 0, last_event_id)  # type: ignore[return-value]
    logs = visit.station.logs
    found = logs.latest(found_id, limit=limit) if latest else logs.of_job(found_id, after_seq=after or 0, limit=limit)
    items = read_page(found)
    last = items[-1].seq if items else after or 0
    return HistoryPage(items=tuple(items), next=str(last) if items and not latest else None, cursor=str(last))


@routes.get("/jobs/{job}/logs/search", operation_id="search_logs", summary="Lines of a job's log that contain a text")
def search_logs(
    visit: Reading,
    job: JobReference,
    text: Annotated[
        str, Query(min_length=1, max_length=200, description="Plain text; upper and lower case are the same.")
    ],
    after: Annotated[int, Query(ge=0, le=_LARGEST, description="Only matches after the one with this number.")] = 0,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many lines.")] = 100,
    exact: Exact = False,
) -> Page[LogMatchDocument]:
    found = visit.station.logs.search(job_id(visit, job, exact), text, limit=limit, after=after)
    items = tuple(LogMatchDocument.of(match) for match in found)
    return Page(items=items, next=str(items[-1].number) if len(items) == limit else None)


@routes.get(
    "/jobs/{job}/readings",
    operation_id="list_readings",
    summary="Loss and speed by training step, oldest first",
    **_live(_JOB_STREAM),
)
def list_readings(
    request: Request,
    visit: Reading,
    job: JobReference,
    after: After = None,
    limit: Annotated[int, Query(ge=1, le=5000, description="At most this many.")] = 1000,
    latest: Annotated[bool, Query(description="The last ones, whatever `after` is; not for a live stream.")] = False,
    exact: Exact = False,
    last_event_id: LastEventId = None,
) -> HistoryPage[ReadingDocument]:
    found_id = job_id(visit, job, exact)
    if _wants_stream(request):
        return _stream(request, visit, Topic(TopicKind.READINGS, found_id), after or 0, last_event_id)  # type: ignore[return-value]
    readings = visit.station.readings
    found = (
        readings.latest(found_id, limit=limit)
        if latest
        else readings.numbered(found_id, after_seq=after or 0, limit=limit)
    )
    last = found[-1][0] if found else after or 0
    items = tuple(ReadingDocument.of(seq, reading) for seq, reading in found)
    more = len(found) == limit and not latest
    return HistoryPage(items=items, next=str(last) if more else None, cursor=str(last))


@routes.get(
    "/jobs/{job}/readings/trend",
    operation_id="show_loss_trend",
    summary="The loss of a job in a few dozen values, for a small picture",
)
def show_loss_trend(visit: Reading, job: JobReference, exact: Exact = False) -> LossTrendDocument:
    return LossTrendDocument(loss=tuple(visit.station.readings.loss_trend(job_id(visit, job, exact))))


def _wants_stream(request: Request) -> bool:
    return MEDIA_TYPE in request.headers.get("accept", "").lower()


def _stream(request: Request, visit: Visit, topic: Topic, after: int | None, last_event_id: str | None) -> Response:
    hub: Hub | None = request.app.state.live
    if hub is None:
        raise UserError("this server has no live streams", hint="ask without Accept: text/event-stream")
    return LiveStream(
        hub,
        topic,
        caller=visit.caller,
        again=getattr(request.state, "caller_again", None),  # the gate has put it there
        read_page=reader_of(topic, visit.station),
        after=after if last_event_id is None else int(last_event_id),
    )
