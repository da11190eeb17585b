"""A ComfyDeploy on this computer: it really downloads each link, without any credentials, and keeps what came."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

COMFY_KEY = "comfy-planted-key"


@dataclass(slots=True, kw_only=True)
class ComfyDownload:
    filename: str
    folder: str
    link: str
    status: str = "started"
    sha256: str | None = None
    error: str | None = None


class ComfyDeployServer:
    """Use as a context manager. `refusals` are statuses that the next calls get."""

    def __init__(self) -> None:
        self.downloads: list[ComfyDownload] = []
        self.wrong: list[str] = []
        self.refusals: list[int] = []
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> ComfyDeployServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def do_GET(self) -> None:
                self._answer(None)

            def _answer(self, body: Any) -> None:
                key = self.headers.get("Authorization")
                status, document = outer._answer(self.command, self.path, key, body)
                raw = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *args: Any) -> None:
                """Nobody reads it."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for thread in self._threads:
            thread.join()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/api"

    @property
    def environ(self) -> dict[str, str]:
        return {"STATIONMASTER_COMFYDEPLOY__API_KEY": COMFY_KEY, "STATIONMASTER_COMFYDEPLOY__BASE_URL": self.url}

    def forget(self) -> None:
        """As if nothing had ever been downloaded."""
        with self._lock:
            self.downloads.clear()

    def _answer(self, method: str, path: str, key: str | None, body: Any) -> tuple[int, Any]:
        with self._lock:
            if self.refusals:
                return self.refusals.pop(0), {"detail": "refused"}
            if key != f"Bearer {COMFY_KEY}":
                return 401, {"detail": "Unauthorized"}
            if (method, path) == ("POST", "/api/volume/model"):
                return self._start(body)
            if (method, path) == ("GET", "/api/volume/downloading-models"):
                return 200, [self._record(one) for one in self.downloads]
            if (method, path) == ("GET", "/api/volume/private-models"):
                done = [one for one in self.downloads if one.status == "success"]
                return 200, {"models": [{"path": f"/{one.folder}/{one.filename}", "type": "file"} for one in done]}
        return 404, {"detail": "Not Found"}

    def _start(self, body: dict[str, Any]) -> tuple[int, Any]:
        wanted = {"source", "folderPath", "filename", "downloadLink"}
        if set(body) != wanted or body["source"] != "link" or not body["folderPath"]:
            self.wrong.append(f"fields {sorted(body)}")
            return 422, {"detail": "Unprocessable"}
        live = [one for one in self.downloads if one.status != "failed"]
        if any((one.filename, one.folder) == (body["filename"], body["folderPath"]) for one in live):
            return 409, {"detail": "File already exists"}
        one = ComfyDownload(filename=body["filename"], folder=body["folderPath"], link=body["downloadLink"])
        self.downloads.append(one)
        thread = threading.Thread(target=self._download, args=(one,))
        self._threads.append(thread)
        thread.start()
        return 200, {"message": "Model download started"}

    def _download(self, one: ComfyDownload) -> None:
        try:
            answer = httpx.get(one.link, follow_redirects=True, timeout=150, verify=False)
            answer.raise_for_status()
        except httpx.HTTPError as problem:
            one.error, one.status = type(problem).__name__, "failed"
            return
        one.sha256 = hashlib.sha256(answer.content).hexdigest()
        one.status = "success"

    def _record(self, one: ComfyDownload) -> dict[str, Any]:
        progress = 100 if one.status == "success" else 0
        known = {"model_name": one.filename, "folder_path": one.folder, "status": one.status}
        return {**known, "download_progress": progress, "error": one.error}
