"""An unexpected error becomes a problem document like any other; the log has the details."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from stationmaster.api.problems import problem_response
from stationmaster.errors import StationmasterError
from stationmaster.event_log import get_logger

log = get_logger("stationmaster.serve")


class Unexpected:
    """Answers 500 where a route fails. Inside the middleware that adds headers, which such an answer needs too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def watched(message: Message) -> None:
            nonlocal has_started
            has_started = has_started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            log.error(
                "request.failed",
                method=scope.get("method"),
                path=scope.get("path"),
                problem=f"{type(error).__name__}: {error}",
                exc_info=error,
            )
            if has_started:
                raise  # the connection is cut, so that half an answer does not look like a whole one
            answer = problem_response(StationmasterError("the server made a mistake; its log has the details"))
            await answer(scope, receive, send)
