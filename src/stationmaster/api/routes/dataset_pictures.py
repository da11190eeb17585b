"""The pictures of an upload: a list with captions, and small pictures of them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from stationmaster.api.problems import problems
from stationmaster.api.routes.dataset_files import FilePath
from stationmaster.api.routes.datasets import UploadId
from stationmaster.api.thumbnail_response import THUMBNAIL_RESPONSES, thumbnail_response
from stationmaster.api.visit import Reading
from stationmaster.station.wire.dataset_uploads import UploadedPictureDocument
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api/datasets", tags=["datasets"], responses=problems(400, 401, 403, 404, 422))


@routes.get(
    "/{upload}/pictures",
    operation_id="list_uploaded_pictures",
    summary="The pictures of an upload with their captions, by path",
    description="Those that have arrived. An archive is not unpacked for this: it has none.",
)
def list_uploaded_pictures(
    visit: Reading,
    upload: UploadId,
    after: Annotated[str | None, Query(description="`next` of the page before.", max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many pictures.")] = 100,
) -> Page[UploadedPictureDocument]:
    found = visit.station.dataset_uploads.pictures(upload, after=after, limit=limit)
    following = found[-1].path if len(found) == limit else None
    return Page(items=tuple(UploadedPictureDocument.of(one) for one in found), next=following)


@routes.get(
    "/{upload}/thumbnails/{path:path}",
    operation_id="get_uploaded_thumbnail",
    summary="A picture of an upload, scaled down",
    response_class=Response,
    responses=THUMBNAIL_RESPONSES,
)
async def get_uploaded_thumbnail(
    visit: Reading,
    request: Request,
    upload: UploadId,
    path: FilePath,
    width: Annotated[int, Query(ge=16, le=1024, description="Pixels; never more than the picture has.")] = 256,
) -> Response:
    uploads = visit.station.dataset_uploads
    return await thumbnail_response(request, lambda: uploads.thumbnail(upload, path, width=width), is_lasting=False)
