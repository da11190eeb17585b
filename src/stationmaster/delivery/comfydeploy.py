"""The ComfyDeploy client: registers a model by a link from which the service downloads it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import httpx

from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.http_answers import MIB, AnswerLimit, ask, read_json
from stationmaster.trusted_certificates import trusted_certificates

_TIMEOUT_SECONDS = 30.0
_ANSWER = AnswerLimit(most_bytes=16 * MIB, seconds=60.0)
_LATER = (408, 425, 429, 500, 502, 503, 504)


class Download(StrEnum):
    """State of the service's download of a model."""

    RUNNING = "RUNNING"
    DONE = "DONE"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"  # the service does not list it


@dataclass(frozen=True, slots=True, kw_only=True)
class DownloadState:
    download: Download
    note: str | None = None


class ComfyDeploy:
    """Client for one account. Raises DeliveryRefused and DeliveryBusy, never with a link in the message."""

    def __init__(self, *, base_url: str, api_key: str, folder: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._folder = folder
        self._headers = {"Authorization": f"Bearer {api_key}"}

    async def start(self, file_name: str, link: str) -> None:
        """Ask the service to download the file; does nothing if it has a file of that name."""
        wanted = {"source": "link", "folderPath": self._folder, "filename": file_name, "downloadLink": link}
        await self._ask("POST", "/volume/model", json=wanted, fine=(409,))

    async def state(self, file_name: str) -> DownloadState:
        """The state of that file's download; finished files are checked first."""
        if file_name in _names_in(await self._ask("GET", "/volume/private-models")):
            return DownloadState(download=Download.DONE)
        downloads = await self._ask("GET", "/volume/downloading-models")
        ours = [one for one in _records(downloads) if self._is_ours(one, file_name)]
        if not ours:
            return DownloadState(download=Download.UNKNOWN)
        return _state_of(ours[-1])

    def _is_ours(self, record: dict[str, Any], file_name: str) -> bool:
        name = record.get("filename") or record.get("model_name") or record.get("name")
        folder = record.get("folderPath") or record.get("folder_path") or self._folder
        return name == file_name and folder == self._folder

    async def _ask(self, method: str, path: str, *, json: Any = None, fine: tuple[int, ...] = ()) -> Any:
        try:
            async with httpx.AsyncClient(
                timeout=_TIMEOUT_SECONDS, headers=self._headers, verify=trusted_certificates()
            ) as client:
                answer = await ask(client, method, f"{self._base_url}{path}", limit=_ANSWER, json=json)
        except httpx.HTTPError as problem:
            reason = str(problem) or type(problem).__name__
            raise DeliveryBusy(f"ComfyDeploy: {method} {path}: {reason}") from problem
        if answer.is_success or answer.status_code in fine:
            return _document(answer)
        message = f"ComfyDeploy: {method} {path} answered {answer.status_code}"
        if answer.status_code in _LATER:
            raise DeliveryBusy(message)
        raise DeliveryRefused(message, hint="check comfydeploy.api_key" if answer.status_code in (401, 403) else None)


def _document(answer: httpx.Response) -> Any:
    try:
        return read_json(answer.content)
    except ValueError:
        return None


def _records(document: Any) -> list[dict[str, Any]]:
    """The service answers with a list, or with an object that holds one."""
    if isinstance(document, dict):
        document = next((value for value in document.values() if isinstance(value, list)), [])
    return [one for one in document or () if isinstance(one, dict)]


def _names_in(document: Any) -> set[str]:
    """Every file name in a listing, at any depth."""
    names: set[str] = set()
    waiting = [document]
    while waiting:
        at = waiting.pop()
        if isinstance(at, list):
            waiting += at
        elif isinstance(at, dict):
            waiting += [value for value in at.values() if isinstance(value, list | dict)]
            found = at.get("filename") or at.get("name") or at.get("path")
            if isinstance(found, str):
                names.add(found.rpartition("/")[2])
    return names


def _state_of(record: dict[str, Any]) -> DownloadState:
    status = str(record.get("status") or record.get("upload_status") or "").lower()
    progress = record.get("progress", record.get("download_progress"))
    if status in ("success", "done", "completed"):
        return DownloadState(download=Download.DONE)
    if status in ("failed", "error"):
        return DownloadState(download=Download.FAILED, note=str(record.get("error") or "the download failed"))
    return DownloadState(download=Download.RUNNING, note=None if progress is None else f"{progress} %")
