"""A dataset on the Hugging Face Hub, at one commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from stationmaster.datasets.sources.remote_dataset import DigestKind, RemoteFile
from stationmaster.errors import DeliveryBusy, DeliveryRefused, NotFound

_TIMEOUT_SECONDS = 60.0
_LATER = (408, 425, 429, 500, 502, 503, 504)
_OF_THE_REPOSITORY = (".gitattributes", "README.md")  # not part of the dataset


class HubDataset:
    """A `RemoteDataset`. `commit` is the commit of the revision when this was created."""

    def __init__(self, *, url: str, repository: str, revision: str | None, token: str | None) -> None:
        """Raises NotFound, and DeliveryRefused if the dataset is gated or private."""
        self._repository = repository
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        # Large files are redirected to another host; httpx does not send the token there.
        self._client = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT_SECONDS, follow_redirects=True
        )
        try:
            at = "" if revision is None else f"/revision/{quote(revision, safe='')}"
            self.commit = str(self._document(f"/api/datasets/{repository}{at}")["sha"])
        except BaseException:
            self.close()
            raise

    def listed(self) -> Sequence[RemoteFile]:
        found: list[dict[str, Any]] = []
        page: str | None = f"/api/datasets/{self._repository}/tree/{self.commit}?recursive=true"
        while page is not None:
            with self._request("GET", page) as answer:
                answer.read()
                found += answer.json()
                page = answer.links.get("next", {}).get("url")
        files = (entry for entry in found if entry.get("type") == "file")
        return [_file(entry) for entry in files if entry["path"] not in _OF_THE_REPOSITORY]

    def read(self, file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        where = f"/datasets/{self._repository}/resolve/{self.commit}/{quote(file.key)}"
        with self._request("GET", where, headers=headers) as answer:
            unwanted = offset if answer.status_code != 206 else 0
            for chunk in answer.iter_bytes():
                if unwanted < len(chunk):
                    yield chunk[unwanted:]
                unwanted = max(0, unwanted - len(chunk))

    def digest_is_of_content(self, file: RemoteFile) -> bool:
        return True

    def close(self) -> None:
        self._client.close()

    def _document(self, where: str) -> dict[str, Any]:
        with self._request("GET", where) as answer:
            answer.read()
            found: dict[str, Any] = answer.json()
            return found

    @contextmanager
    def _request(self, method: str, where: str, **options: Any) -> Iterator[httpx.Response]:
        try:
            with self._client.stream(method, where, **options) as answer:
                if answer.status_code >= 400:
                    answer.read()
                    self._refuse(answer)
                yield answer
        except httpx.HTTPError as problem:
            raise DeliveryBusy(f"the Hub does not answer ({type(problem).__name__})") from None

    def _refuse(self, answer: httpx.Response) -> None:
        name, status = self._repository, answer.status_code
        page = f"{self._client.base_url}/datasets/{name}"
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


def _file(entry: dict[str, Any]) -> RemoteFile:
    large = entry.get("lfs") or {}
    digest = str(large.get("oid") or entry["oid"])
    return RemoteFile(
        path=str(entry["path"]),
        key=str(entry["path"]),
        size=int(large.get("size") or entry["size"]),
        version=digest,
        digest_kind=DigestKind.SHA256 if large else DigestKind.GIT_BLOB,
        digest=digest,
    )
