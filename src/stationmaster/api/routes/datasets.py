"""Datasets: uploads of a user, and checks of datasets."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading, Training
from stationmaster.station.wire.dataset_uploads import StartUpload, UploadDocument
from stationmaster.station.wire.datasets import (
    AskedCheck,
    AskedRules,
    DatasetReportDocument,
    DatasetRulesDocument,
)
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api/datasets", tags=["datasets"], responses=problems(400, 401, 403, 404, 422))

UploadId = Annotated[str, Path(description="Id of the upload.", max_length=200)]
_Owner = Annotated[str | None, Query(description="Whose uploads; by default your own.", max_length=200)]


@routes.post(
    "",
    operation_id="start_dataset_upload",
    summary="Begin the upload of a dataset",
    description="""
Then send each file with `PUT /api/datasets/{upload}/files/{path}`: images with their captions, or one archive
(`.tar`, `.zip`). When all are there, train on it with `upload:ID` as the dataset. An upload that is not used for 3 days
is removed.

If one archive is to be sent, give its `sha256` and `size`: when you have an upload with the same content, finished or
not, that one is answered. If it is `complete`, nothing has to be sent.
""",
    status_code=201,
    responses=problems(413),
)
def start_dataset_upload(visit: Training, new: StartUpload, user: _Owner = None) -> UploadDocument:
    return UploadDocument.of(visit.station.dataset_uploads.start(new.value(user or visit.caller.user)))


@routes.get("", operation_id="list_dataset_uploads", summary="Uploads of datasets, newest first")
def list_dataset_uploads(
    visit: Reading,
    user: _Owner = None,
    after: Annotated[str | None, Query(description="`next` of the page before.", max_length=200)] = None,
    limit: Annotated[int, Query(ge=1, le=200, description="At most this many uploads.")] = 50,
) -> Page[UploadDocument]:
    found = visit.station.dataset_uploads.listed(user or visit.caller.user, after=after, limit=limit)
    following = found[-1].id if len(found) == limit else None
    return Page(items=tuple(UploadDocument.of(one) for one in found), next=following)


@routes.get("/rules", operation_id="get_dataset_rules", summary="What a recipe expects of its dataset")
def get_dataset_rules(
    visit: Reading,
    recipe: Annotated[str, Query(description="Name of a recipe, with or without a version.", max_length=200)],
    trigger: Annotated[str | None, Query(description="Word that captions should contain.", max_length=200)] = None,
) -> DatasetRulesDocument:
    return DatasetRulesDocument.of(visit.station.datasets.rules_of(recipe, trigger=trigger))


@routes.post(
    "/check",
    operation_id="check_dataset",
    summary="Check a dataset in a bucket, on the Hub, or uploaded",
    description="Only administrators may name a bucket or a dataset on the Hub: the server reads it with its own keys.",
    responses=problems(502, 507),
)
def check_dataset(visit: Training, asked: AskedCheck) -> DatasetReportDocument:
    return DatasetReportDocument.of(visit.station.datasets.check(asked.source(), asked.rules()))


@routes.get("/{upload}", operation_id="get_dataset_upload", summary="One upload")
def get_dataset_upload(visit: Reading, upload: UploadId) -> UploadDocument:
    return UploadDocument.of(visit.station.dataset_uploads.find(upload))


@routes.delete("/{upload}", operation_id="delete_dataset_upload", summary="Remove an upload", status_code=204)
def delete_dataset_upload(visit: Training, upload: UploadId) -> Response:
    visit.station.dataset_uploads.remove(upload)
    return Response(status_code=204)


@routes.post(
    "/{upload}/check",
    operation_id="check_dataset_upload",
    summary="Check an uploaded dataset as a whole",
    description="By default against the recipe that was named when the upload began.",
    responses=problems(507),
)
def check_dataset_upload(visit: Training, upload: UploadId, asked: AskedRules) -> DatasetReportDocument:
    report = visit.station.dataset_uploads.check(upload, recipe=asked.recipe, trigger=asked.trigger)
    return DatasetReportDocument.of(report)
