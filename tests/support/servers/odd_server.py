"""An HTTP server that answers as a test wants, also against all rules; it keeps what it was sent."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = Callable[["Exchange"], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Exchange:
    """One request, and the connection on which its answer goes out, byte by byte if wanted."""

    def __init__(self, handler: BaseHTTPRequestHandler, request: SeenRequest, stopping: threading.Event) -> None:
        self.request = request
        self._handler = handler
        self._stopping = stopping

    def send(self, content: bytes) -> None:
        self._handler.wfile.write(content)
        self._handler.wfile.flush()

    def head(self, status: int = 200, /, **headers: str) -> None:
        self._handler.send_response(status)
        self._handler.send_header("Connection", "close")
        for name, value in headers.items():
            self._handler.send_header(name.replace("_", "-"), value)
        self._handler.end_headers()

    def answer(self, content: bytes, status: int = 200, /, **headers: str) -> None:
        self.head(status, Content_Length=str(len(content)), **headers)
        self.send(content)

    def dribble(self, content: bytes, *, interval_seconds: float) -> None:
        """Send a byte per interval, until all is sent, the client is gone or the test is over."""
        for index in range(len(content)):
            if self._stopping.wait(interval_seconds):
                return
            self.send(content[index : index + 1])


@dataclass
class OddServer:
    """Use it as a context. `cut_off` is set when a client has closed its connection before the answer was sent."""

    answer: Answer
    seen: list[SeenRequest] = field(default_factory=list)
    cut_off: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    def __enter__(self) -> Self:
        stopping = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    outer.cut_off.set()
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

            def _any(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                request = SeenRequest(method=self.command, path=self.path, headers=dict(self.headers), body=body)
                outer.seen.append(request)
                self.close_connection = True
                outer.answer(Exchange(self, request, stopping))

            do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _any

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._stopping = stopping
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *about: object) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()


@cache
def packed_zeros(mebibytes: int) -> bytes:
    """Zeros as gzip: a thousandth of their size."""
    packer = zlib.compressobj(level=1, wbits=31)
    zeros = bytes(1 << 20)
    return b"".join([*(packer.compress(zeros) for _ in range(mebibytes)), packer.flush()])
