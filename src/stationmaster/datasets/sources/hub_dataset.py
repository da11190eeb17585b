"""A dataset on the Hugging Face Hub, at one commit. The token is sent to the Hub's own origin only."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from stationmaster.datasets.sources.remote_dataset import DigestKind, RemoteFile
from stationmaster.datasets.tree import MAX_ENTRIES
from stationmaster.errors import DatasetInvalid, DeliveryBusy, DeliveryRefused, NotFound
from stationmaster.http_answers import MIB, AnswerLimit, AnswerTooLarge, AnswerTooSlow, ask, origin_of, read_json
from stationmaster.trusted_certificates import trusted_certificates

_TIMEOUT_SECONDS = 60.0
_ANSWER = AnswerLimit(most_bytes=16 * MIB, seconds=120.0)  # a page of the list has a third of a megabyte
_MOST_PAGES = 2000
_LARGEST_FILE = 1 << 50
_SLOW_SECONDS = 60.0  # after this time a file must arrive at the least rate
_LEAST_BYTES_PER_SECOND = 1024
_LATER = (408, 425, 429, 500, 502, 503, 504)
_OF_THE_REPOSITORY = (".gitattributes", "README.md")  # not part of the dataset


class HubDataset:
    """A `RemoteDataset`. `commit` is the commit of the revision when this was created."""

    def __init__(
        self,
        *,
        url: str,
        repository: str,
        revision: str | None,
        token: str | None,
        answer: AnswerLimit = _ANSWER,
        most_pages: int = _MOST_PAGES,
        slow_seconds: float = _SLOW_SECONDS,
    ) -> None:
        """Raises NotFound, and DeliveryRefused if the dataset is gated or private."""
        self._url = url.rstrip("/")
        self._repository = repository
        self._answer = answer
        self._most_pages = most_pages
        self._slow_seconds = slow_seconds
        # Large files are redirected to another host; httpx does not send the token there.
        self._options: dict[str, Any] = {
            "headers": {} if token is None else {"Authorization": f"Bearer {token}"},
            "timeout": _TIMEOUT_SECONDS,
            "follow_redirects": True,
            "verify": trusted_certificates(),
        }
        self._client = httpx.Client(**self._options)
        try:
            at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
            answered = self._ask(f"{self._url}/api/datasets/{repository}{at}")
            with _reading(repository):
                self.commit = str(read_json(answered.content)["sha"])
        except BaseException:
            self.close()
            raise

    def listed(self) -> Sequence[RemoteFile]:
        """Raises DeliveryRefused for a list that continues at another host, and DatasetInvalid for one without end."""
        found: list[RemoteFile] = []
        entries = pages = 0
        page: str | None = f"{self._url}/api/datasets/{self._repository}/tree/{self.commit}?recursive=true"
        while page is not None:
            answered = self._ask(page)
            with _reading(self._repository):
                listed = read_json(answered.content)
                found += [_file(entry) for entry in listed if entry.get("type") == "file"]
                entries, pages = entries + len(listed), pages + 1
            page = self._next_page(answered, page)
            if entries > MAX_ENTRIES or (page is not None and pages >= self._most_pages):
                raise DatasetInvalid(f"the dataset {self._repository} contains more than {MAX_ENTRIES:,} files")
        return [file for file in found if file.path not in _OF_THE_REPOSITORY]

    def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
        where = f"{self._url}/datasets/{self._repository}/resolve/{self.commit}/{quote(file.key)}"
        with self._stream(where, headers) as answer:
            unwanted = offset if answer.status_code != 206 else 0
            began, received = time.monotonic(), 0
            for chunk in answer.iter_raw():
                received += len(chunk)
                self._require_speed(received, time.monotonic() - began)
                if unwanted < len(chunk):
                    yield chunk[unwanted:]
                unwanted = max(0, unwanted - len(chunk))

    def digest_is_of_content(self, file: RemoteFile) -> bool:
        return True

    def close(self) -> None:
        self._client.close()

    def _ask(self, url: str) -> httpx.Response:
        """A document of the Hub, complete and within the limits."""
        with _reaching_hub():
            answer = asyncio.run(self._ask_once(url))
        if answer.status_code >= 400:
            self._refuse(answer)
        return answer

    async def _ask_once(self, url: str) -> httpx.Response:
        async with httpx.AsyncClient(**self._options) as client:
            return await ask(client, "GET", url, limit=self._answer)

    @contextmanager
    def _stream(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        with _reaching_hub(), self._client.stream("GET", url, headers=headers) as answer:
            if answer.status_code >= 400:
                self._refuse(answer)
            yield answer

    def _next_page(self, answer: httpx.Response, page: str) -> str | None:
        """The URL of the next page. Raises DeliveryRefused if it is not the Hub's: the token must not go there."""
        link = answer.links.get("next", {}).get("url")
        if link is None:
            return None
        try:
            url = httpx.URL(page).join(link)
        except httpx.InvalidURL:
            raise DeliveryRefused(f"the list of files of {self._repository} continues at an invalid URL") from None
        if origin_of(url) != origin_of(self._url):
            raise DeliveryRefused(
                f"the list of files of {self._repository} continues at {url.host[:100]}, which is not the Hub",
                hint="check hub.url; the token was not sent there",
            )
        return str(url)

    def _require_speed(self, received: int, seconds: float) -> None:
        if seconds > self._slow_seconds and received < seconds * _LEAST_BYTES_PER_SECOND:
            raise DeliveryBusy(f"the Hub sends a file of {self._repository} too slowly")

    def _refuse(self, answer: httpx.Response) -> None:
        name, status = self._repository, answer.status_code
        page = f"{self._url}/datasets/{name}"
        if status in _LATER:
            raise DeliveryBusy(f"the Hub answers {status} for the dataset {name}")
        if answer.headers.get("X-Error-Code") == "GatedRepo" or status == 403:
            raise DeliveryRefused(
                f"the dataset {name} is gated, and this account has no access", hint=f"request access at {page}"
            )
        if status == 401:
            raise DeliveryRefused(
                f"the dataset {name} is private or does not exist",
                hint="set HF_TOKEN to a token that can read it, and check the name",
            )
        if status == 404:
            raise NotFound(f"there is no dataset {name} on the Hub, or no such revision", hint=f"see {page}")
        raise DeliveryRefused(f"the Hub answers {status} for the dataset {name}")


@contextmanager
def _reaching_hub() -> Iterator[None]:
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as problem:
        reason = str(problem) if isinstance(problem, AnswerTooLarge | AnswerTooSlow) else type(problem).__name__
        raise DeliveryBusy(f"the Hub does not answer ({reason})") from None


@contextmanager
def _reading(repository: str) -> Iterator[None]:
    """Raise DeliveryBusy for a malformed answer: it may come from a captive portal, not from the Hub."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as problem:
        raise DeliveryBusy(f"the Hub gave an unreadable answer about the dataset {repository}") from problem


def _file(entry: dict[str, Any]) -> RemoteFile:
    large = entry.get("lfs") or {}
    digest, size = str(large.get("oid") or entry["oid"]), int(large.get("size") or entry["size"])
    if not 0 <= size <= _LARGEST_FILE:
        raise ValueError(f"{size} is not a possible size")
    return RemoteFile(
        path=str(entry["path"]),
        key=str(entry["path"]),
        size=size,
        version=digest,
        digest_kind=DigestKind.SHA256 if large else DigestKind.GIT_BLOB,
        digest=digest,
    )
