"""The pages that a browser opens; what they show comes from the API."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse

STATIC = Path(__file__).parent.parent / "static"

routes = APIRouter(include_in_schema=False)


@routes.get("/")
def show_start() -> FileResponse:
    return FileResponse(STATIC / "index.html")


@routes.get("/sign-in")
def show_sign_in() -> FileResponse:
    return FileResponse(STATIC / "sign-in.html")
