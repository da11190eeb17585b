"""The page that a browser opens; what it shows comes from the API."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from starlette.convertors import StringConvertor, register_url_convertor

from stationmaster.api.page_files import PageFiles
from stationmaster.errors import NotFound


class _PagePath(StringConvertor):
    """Every address that no other route has: it must not take the place of a 404 or 405 of the API.

    Not `//other.site`, which a browser reads as the address of another site, and no control characters.
    """

    regex = r"(?!api/|api$|healthz$|readyz$|[/\\])[^\x00-\x1f\x7f]*"


register_url_convertor("page", _PagePath())

routes = APIRouter(include_in_schema=False)


@routes.api_route("/{path:page}", methods=["GET", "HEAD"])
async def show_page(request: Request, path: str) -> Response:
    """Answers from memory, so it needs no thread."""
    files: PageFiles = request.app.state.page
    file = files.file(path)
    if file is not None:
        return file.response(request)
    if path.startswith("assets/"):
        raise NotFound(f"there is no file {path[:200]}", hint="reload the page: it may be of an older version")
    start = files.start()
    if start is None:
        raise NotFound(
            "this installation has no page: it was built without it",
            hint="install Stationmaster again with access to the npm registry; in a checkout, run `make page`",
        )
    return start
