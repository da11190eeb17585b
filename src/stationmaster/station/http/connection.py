"""Requests to the API of a server; its errors are raised as the exceptions that they were there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, TypeAdapter, ValidationError

from stationmaster import __version__
from stationmaster.errors import ConfigInvalid, ServerError, StationmasterError
from stationmaster.station.wire.document import Page, RequestDocument
from stationmaster.station.wire.problem import MEDIA_TYPE, Problem
from stationmaster.trusted_certificates import trusted_certificates

Answer = TypeVar("Answer", bound=BaseModel)
Parameters = Mapping[str, str | int | float | bool | list[str] | None]

_SECONDS = httpx.Timeout(60.0, connect=10.0)
_PATIENT = httpx.Timeout(600.0, connect=10.0)  # for what asks a provider, a bucket or the Hub


class Connection:
    """One server. Every method raises the StationmasterError that the server answers, or ServerError."""

    def __init__(self, url: str, token: str | None, *, transport: httpx.BaseTransport | None = None) -> None:
        """`transport` sends the requests; by default httpx's own."""
        self.url = url.rstrip("/")
        headers = {"User-Agent": f"stationmaster/{__version__}", "Accept": "application/json"}
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        has_tls = not self.url.startswith("http://")  # without it, loading certificates would only take time
        try:
            self.client = httpx.Client(
                base_url=self.url,
                headers=headers,
                timeout=_SECONDS,
                transport=transport,
                verify=trusted_certificates() if has_tls else False,
            )
            self.client.base_url.host.encode()  # decodes it, which may fail as well
        except (httpx.InvalidURL, UnicodeError):
            raise ConfigInvalid("server: the host name in the address is not valid", hint="check --server") from None

    def get(self, path: str, answer: type[Answer], **parameters: str | int | float | bool | None) -> Answer:
        return self.read(self.send("GET", path, parameters=parameters), answer)

    def post(
        self,
        path: str,
        answer: type[Answer],
        body: RequestDocument | None = None,
        *,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        patient: bool = False,
    ) -> Answer:
        found = self.send("POST", path, body=body, parameters=parameters, headers=headers, patient=patient)
        return self.read(found, answer)

    def items(self, path: str, item: type[Answer], *, most: int | None = None, **parameters: Any) -> Iterator[Answer]:
        """Every item of a list from `after` on, over all its pages, or the first `most` of them."""
        count, after = 0, parameters.pop("after", None)
        while True:
            found = self.send("GET", path, parameters={**parameters, "after": after})
            page = self.read(found, Page[item])  # type: ignore[valid-type]
            for each in page.items:
                if most is not None and count >= most:
                    return
                yield each
                count += 1
            after = page.next
            if after is None:
                return

    def send(
        self,
        method: str,
        path: str,
        *,
        body: RequestDocument | None = None,
        content: Any = None,
        parameters: Parameters | None = None,
        headers: Mapping[str, str] | None = None,
        patient: bool = False,
    ) -> httpx.Response:
        """One request; the answer's status is a success."""
        given = {name: text_of(value) for name, value in (parameters or {}).items() if value is not None}
        json_headers = {} if body is None else {"Content-Type": "application/json"}
        with self.errors_of_server():
            found = self.client.request(
                method,
                path,
                params=given,
                content=content if body is None else body.model_dump_json(exclude_unset=True),
                headers={**json_headers, **(headers or {})},
                timeout=_PATIENT if patient else _SECONDS,
            )
        self.require_success(found)
        return found

    def require_success(self, found: httpx.Response) -> None:
        """Raises the error that the server answered."""
        if found.is_success or found.status_code == httpx.codes.NOT_MODIFIED:
            return
        found.read()
        raise self._error(found)

    @contextmanager
    def errors_of_server(self) -> Iterator[None]:
        """Raise errors of the connection as ServerError."""
        try:
            yield
        except httpx.HTTPError as problem:
            raise ServerError(
                f"{self.url} does not answer: {str(problem) or type(problem).__name__}",
                hint="check the address given with --server, and that `stationmaster serve` runs there",
            ) from None

    def close(self) -> None:
        self.client.close()

    def read(self, found: httpx.Response, answer: type[Answer]) -> Answer:
        """The document that a response carries."""
        try:
            return TypeAdapter(answer).validate_json(found.content)
        except ValidationError:
            raise self._not_ours() from None

    def _error(self, found: httpx.Response) -> StationmasterError:
        if found.headers.get("content-type", "").startswith(MEDIA_TYPE):
            try:
                return Problem.model_validate_json(found.content).error()
            except ValidationError:
                pass  # not a problem as we write them
        return ServerError(
            f"{self.url} answers {found.status_code}", hint="is this the address of `stationmaster serve`?"
        )

    def _not_ours(self) -> ServerError:
        return ServerError(
            f"{self.url} does not answer as Stationmaster does", hint="is this the address of `stationmaster serve`?"
        )


def segment(text: str) -> str:
    """Text as one part of a path.

    >>> segment("a/b"), segment("..")
    ('a%2Fb', '%2E%2E')
    """
    return "%2E" * len(text) if text in (".", "..") else quote(text, safe="")


def text_of(value: str | int | float | bool | list[str]) -> str | list[str]:
    """A parameter's value as httpx takes it; a list is a parameter that occurs several times."""
    if isinstance(value, list):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)
