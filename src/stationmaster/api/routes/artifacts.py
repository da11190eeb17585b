"""Files of jobs: a list, downloads, and small pictures of pictures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from stationmaster.api.file_response import FILE_RESPONSES, file_response
from stationmaster.api.problems import problems
from stationmaster.api.routes.jobs import Exact, JobReference, job_id
from stationmaster.api.thumbnail_response import THUMBNAIL_RESPONSES, thumbnail_response
from stationmaster.api.visit import Reading
from stationmaster.errors import NotFound
from stationmaster.station.artifacts import Thumbnail
from stationmaster.station.base import Station
from stationmaster.station.wire.artifacts import ArtifactDocument
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api", tags=["artifacts"], responses=problems(401, 403, 404, 422))

FilePath = Annotated[str, Path(description="`path` of the file in the list.", max_length=2000)]
Attempt = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="By default the last attempt that has the file.")]
_SHA256 = r"^[0-9a-f]{64}$"


@routes.get("/jobs/{job}/artifacts", operation_id="list_artifacts", summary="The files of a job")
def list_artifacts(visit: Reading, job: JobReference, exact: Exact = False) -> Page[ArtifactDocument]:
    found = visit.station.artifacts.listed(job_id(visit, job, exact))
    return Page(items=tuple(ArtifactDocument.of(each) for each in found))


@routes.head("/jobs/{job}/artifacts/{path:path}", include_in_schema=False)
@routes.get(
    "/jobs/{job}/artifacts/{path:path}",
    operation_id="download_artifact",
    summary="Download a file of a job, or a range of it",
    response_class=Response,
    responses={**FILE_RESPONSES, **problems(502)},
)
def download_artifact(
    visit: Reading,
    request: Request,
    job: JobReference,
    path: FilePath,
    attempt: Attempt = None,
    exact: Exact = False,
) -> Response:
    return file_response(request, visit.station.artifacts.file(job_id(visit, job, exact), path, attempt=attempt))


@routes.get(
    "/jobs/{job}/thumbnails/{path:path}",
    operation_id="get_thumbnail",
    summary="A picture of a job, scaled down",
    response_class=Response,
    responses={**THUMBNAIL_RESPONSES, **problems(502)},
)
async def get_thumbnail(
    visit: Reading,
    request: Request,
    job: JobReference,
    path: FilePath,
    width: Annotated[int, Query(ge=16, le=1024, description="Pixels; never more than the picture has.")] = 256,
    attempt: Attempt = None,
    sha256: Annotated[
        str | None,
        Query(pattern=_SHA256, description="That of the list: the answer may then be cached without asking again."),
    ] = None,
    exact: Exact = False,
) -> Response:
    def made() -> Thumbnail:
        found = job_id(visit, job, exact)
        return _thumbnail(visit.station, found, path, attempt=attempt, width=width, sha256=sha256)

    return await thumbnail_response(request, made, is_lasting=sha256 is not None)


def _thumbnail(
    station: Station, job: str, path: str, *, attempt: int | None, width: int, sha256: str | None
) -> Thumbnail:
    picture = station.artifacts.thumbnail(job, path, attempt=attempt, width=width)
    if sha256 is not None and not picture.version.startswith(sha256):
        raise NotFound(f"{path} has changed: its SHA-256 is another one now", hint="list the files again")
    return picture
