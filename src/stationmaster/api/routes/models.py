"""Trained models: the catalogue, publishing to the Hub, downloads."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response

from stationmaster.api.file_response import FILE_RESPONSES, file_response
from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading, Training
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.models import ModelDocument, cursor_of, parse_cursor

routes = APIRouter(prefix="/api", tags=["models"], responses=problems(401, 403, 404, 422))

ModelReference = Annotated[
    str,
    Path(description="Slug of the model, the beginning of it, its name, or its job.", min_length=1, max_length=200),
]
Owner = Annotated[str | None, Query(description="Only models of this user.", max_length=200)]


@routes.get("/models", operation_id="list_models", summary="Trained models, newest first", responses=problems(400))
def list_models(
    visit: Reading,
    limit: Annotated[int, Query(ge=1, le=500, description="At most this many.")] = 100,
    after: Annotated[str | None, Query(max_length=300, description="`next` of the page before.")] = None,
    owner: Owner = None,
) -> Page[ModelDocument]:
    found = visit.station.models.listed(
        owner=owner, limit=limit + 1, after=None if after is None else parse_cursor(after)
    )
    shown = found[:limit]
    more = cursor_of(shown[-1]) if len(found) > limit else None
    return Page(items=tuple(ModelDocument.of(model) for model in shown), next=more)


@routes.get("/models/{model}", operation_id="get_model", summary="A trained model")
def get_model(visit: Reading, model: ModelReference, owner: Owner = None) -> ModelDocument:
    return ModelDocument.of(visit.station.models.find(model, owner=owner))


@routes.post(
    "/models/{model}/publish",
    operation_id="publish_model",
    summary="Publish a model to the Hub, with samples and card",
    responses=problems(400, 409, 502),
)
def publish_model(visit: Training, model: ModelReference) -> ModelDocument:
    return ModelDocument.of(visit.station.models.publish(model))


@routes.head("/models/{model}/file", include_in_schema=False)
@routes.get(
    "/models/{model}/file",
    operation_id="download_model",
    summary="Download a model's weights, or a range of them",
    response_class=Response,
    responses={**FILE_RESPONSES, **problems(502)},
)
def download_model(visit: Reading, request: Request, model: ModelReference) -> Response:
    return file_response(request, visit.station.models.file(model))
