"""How long a user waits at `train`, with a simulated Vast.ai that has the real one's pauses between calls.

Measures the time from the start of the command to the confirmation, and from the answer to the stored job; with `--yes`
from the shown price to the stored job. Also counts how often the market was searched and a picture was opened.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sqlite3
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

import httpx
import structlog

from _report import print_figure, report
from _terminal import AtTerminal
from stationmaster.control.worker.background import running_worker
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.simulator.harness import simulator_thread
from stationmaster.simulator.server import SimulatorSettings

BUDGET_SECONDS = 1.0  # from yes to the stored job: nothing is searched again
RUNS = 3
_PATIENCE_SECONDS = 180.0
_COMMAND = str(Path(sys.executable).with_name("stationmaster"))
_KEY = "benchmark-account-key"
_QUESTION = r"\[y/N\]"
_SUBMITTED = r"job \S+ submitted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Seconds, and what happened meanwhile."""

    to_offer: float  # to the question, or with --yes to the price that is shown
    to_stored: float  # from there to the job's row
    to_shown: float  # from there to the line with the job's id
    searches_before: int  # requested pages of offers
    searches_after: int
    opens_before: int  # of one picture
    opens_after: int


def main() -> int:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # standard output is for figures
    for name, yes in (("train", False), ("train --yes", True)):
        runs = [_run(yes=yes) for _ in range(RUNS)]
        seen = "price" if yes else "question"
        print_figure(f"{name}: from the start to the {seen}", statistics.median(run.to_offer for run in runs), "s")
        worst = max(run.to_stored for run in runs)
        start = "the price" if yes else "yes"
        report(f"{name}: from {start} to the stored job", worst, "s", at_most=BUDGET_SECONDS)
        print_figure(f"{name}: from {start} to the job's id on the screen", max(run.to_shown for run in runs), "s")
        print_figure(f"{name}: pages of offers before the {seen}", max(run.searches_before for run in runs), "searches")
        report(f"{name}: pages of offers after it", max(run.searches_after for run in runs), "searches", at_most=0)
        print_figure(f"{name}: a picture is opened before the {seen}", max(run.opens_before for run in runs), "times")
        print_figure(f"{name}: a picture is opened after it", max(run.opens_after for run in runs), "times")
        for each in runs:
            print(json.dumps({"run": name, **_rounded(each)}), file=sys.stderr, flush=True)
    return 0


def _rounded(run: Measured) -> dict[str, float]:
    return {field: round(getattr(run, field), 3) for field in Measured.__slots__}


def _run(*, yes: bool) -> Measured:
    """Run once with a new account, key pair and pictures, so that no earlier call delays it."""
    with tempfile.TemporaryDirectory() as name, _vast(Path(name) / "simulator") as vast:
        folder = Path(name)
        environ = _environment(folder, vast.url)
        subprocess.run([_COMMAND, "keys", "setup"], env=environ, check=True, stdout=subprocess.DEVNULL)
        pictures = folder / "pictures"
        write_sample_set(pictures, images=20)
        try:
            return _train(folder, pictures, environ, vast, yes=yes)
        finally:
            _end_worker(folder / "home")


def _train(folder: Path, pictures: Path, environ: dict[str, str], vast: CountingProxy, *, yes: bool) -> Measured:
    words = ["train", "--provider", "vastai", "--recipe", "tiny-lora@1", "--dataset", str(pictures)]
    database = folder / "home" / "stationmaster.db"
    command_line = [_COMMAND, *words, *(["--yes"] if yes else [])]
    with (
        (folder / "errors").open("w+") as errors,
        OpenCount(sorted(pictures.glob("*.png"))[0]) as opens,
        FirstJob(database) as stored,
        AtTerminal(command_line, environ=environ, cwd=folder, errors=errors) as command,
    ):
        seen_at = command.until_shown(r"\S" if yes else _QUESTION, seconds=_PATIENCE_SECONDS)
        searches, opened = vast.searches(), opens.count()
        asked_at = seen_at if yes else command.type("y")
        told_at = command.until_shown(_SUBMITTED, seconds=_PATIENCE_SECONDS)
        return Measured(
            to_offer=seen_at - command.started_at,
            to_stored=stored.at() - asked_at,
            to_shown=told_at - asked_at,
            searches_before=searches,
            searches_after=vast.searches(until=stored.at()) - searches,
            opens_before=opened,
            opens_after=opens.count() - opened,
        )


def _environment(folder: Path, vast_url: str) -> dict[str, str]:
    """The environment of a user with an account and default settings."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "VASTAI_API_KEY": _KEY,
        "VASTAI_API_BASE_URL": f"{vast_url}/api/v0",
        "STATIONMASTER_WORKER__LINGER": "0",
    }


@contextmanager
def _vast(folder: Path) -> Iterator[CountingProxy]:
    with simulator_thread(_market(folder)) as url, CountingProxy(url) as proxy:
        yield proxy


def _market(folder: Path) -> SimulatorSettings:
    """A simulator with every pause of the real service, more offers than one search reads, and no real machines."""
    return SimulatorSettings(
        home=folder, api_key=_KEY, backend="paper", rate_limit_scale=1.0, hosts=3000, market_period_seconds=0.0
    )


def _end_worker(home: Path) -> None:
    """End the worker that the command started; the job does not matter."""
    worker = running_worker(home)
    if worker is None or not worker.pid:
        return
    os.kill(worker.pid, signal.SIGKILL)
    while running_worker(home) is not None:
        time.sleep(0.05)


class CountingProxy:
    """A proxy in front of the simulator that records when the market was searched."""

    def __init__(self, target: str) -> None:
        self._searched: list[float] = []
        self._client = httpx.Client(base_url=target, timeout=150)
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            def _pass_on(self) -> None:
                proxy.pass_on(self)

            do_GET = do_POST = do_PUT = do_DELETE = _pass_on

            def log_message(self, format: str, *args: object) -> None:
                """Print nothing: the terminal is for the figures."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._client.close()

    def searches(self, *, until: float | None = None) -> int:
        return len([moment for moment in self._searched if until is None or moment <= until])

    def pass_on(self, request: BaseHTTPRequestHandler) -> None:
        if "/bundles" in request.path or "/search/asks" in request.path:
            self._searched.append(time.monotonic())
        body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
        kept = {name: value for name, value in request.headers.items() if name in ("Authorization", "Content-Type")}
        answer = self._client.request(request.command, request.path, content=body, headers=kept)
        request.send_response(answer.status_code)
        for name, value in answer.headers.items():
            if name.lower() not in ("transfer-encoding", "content-encoding", "content-length", "connection"):
                request.send_header(name, value)
        request.send_header("Content-Length", str(len(answer.content)))
        request.end_headers()
        request.wfile.write(answer.content)


class OpenCount:
    """Counts how often a file was opened, with the kernel's inotify."""

    _OPENED, _CLOSED = 0x20, 0x10  # watch both: the kernel merges two equal events in a row
    _EVENT = struct.Struct("iIII")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._count = 0

    def __enter__(self) -> Self:
        library = ctypes.CDLL(None, use_errno=True)
        self._watch = library.inotify_init1(os.O_NONBLOCK)
        if library.inotify_add_watch(self._watch, bytes(self._path), self._OPENED | self._CLOSED) < 0:
            raise OSError(ctypes.get_errno(), "the pictures cannot be watched")
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._watch)

    def count(self) -> int:
        try:
            while news := os.read(self._watch, 65536):
                self._count += sum(1 for _, mask, _, _ in self._EVENT.iter_unpack(news) if mask & self._OPENED)
        except BlockingIOError:
            pass
        return self._count


class FirstJob:
    """Polls the store's file until it contains a job."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._at: float | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def at(self) -> float:
        """When the job was stored, by the monotonic clock; call it after the command has printed the job's id."""
        self._thread.join(_PATIENCE_SECONDS)
        assert self._at is not None, "there is no job"
        return self._at

    def _look(self) -> None:
        while not self._over.wait(0.01):
            try:
                with closing(sqlite3.connect(f"file:{self._database}?mode=ro", uri=True)) as connection:
                    found = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
            except sqlite3.OperationalError:
                continue  # no file, no table yet, or just being written to
            if found:
                self._at = time.monotonic()
                return


if __name__ == "__main__":
    sys.exit(main())
