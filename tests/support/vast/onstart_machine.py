"""A machine for the onstart script: a folder, an API that records its calls, and its own clock."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from stationmaster.providers.vastai.onstart import onstart_script
from tests.support.vast.vast_client_bench import PUBLIC_KEY
from tests.support.waiting import until

MACHINE_KEY = "machine-key-9876543210"
IDLE, ABANDON = 1800, 259200
SHELLS: dict[str, list[str]] = {
    name: command
    for name, command in {
        "sh": ["sh"],
        "bash": ["bash"],
        "dash": ["dash"],
        "busybox": ["busybox", "sh"],
    }.items()
    if shutil.which(command[0])
}
"""The shells that this computer has; every Linux has at least one of them as sh."""


@dataclass
class FakeApi:
    """Stop and destroy of one machine; can be set to refuse stops."""

    url: str = ""
    calls: list[tuple[str, str, Any, str]] = field(default_factory=list)
    refuses_stop: bool = False

    def kinds(self) -> list[str]:
        return [("stop" if method == "PUT" else "destroy") for method, _, _, _ in list(self.calls)]


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    api = FakeApi()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            self._answer("PUT")

        def do_DELETE(self) -> None:
            self._answer("DELETE")

        def log_message(self, format: str, *args: Any) -> None:
            pass

        def _answer(self, method: str) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
            api.calls.append((method, self.path, body, self.headers.get("Authorization", "")))
            refused = method == "PUT" and api.refuses_stop
            content = json.dumps({"success": not refused}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    api.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield api
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class OnstartMachine:
    """Runs the real script under a real shell. Its clock stands still until it is set."""

    def __init__(self, root: Path, api: FakeApi, *, shell: str = "sh", path: str | None = None) -> None:
        self.root = root
        self.home, self.jobs, self.keys = root / "root", root / "jobs", root / "etc/ssh"
        self.container_log, self.output, self.clock = root / "container.log", root / "output", root / "uptime"
        for folder in (self.home, self.keys):
            folder.mkdir(parents=True)
        self.container_log.touch()
        (self.keys / "ssh_host_ed25519_key.pub").write_text("ssh-ed25519 AAAAhost1 root@machine\n")
        self.set_clock(1000)
        self._looks = root / "looks"
        self._looks.touch()
        self._put_counting_sleep(root / "bin")
        self._shell = SHELLS[shell]
        self._started: list[subprocess.Popen[bytes]] = []
        self.environment = {
            "PATH": f"{root / 'bin'}:{path or os.environ['PATH']}",
            "HOME": str(self.home),
            "CONTAINER_ID": "77",
            "CONTAINER_API_KEY": MACHINE_KEY,
            "DATA_FOLDER": "/data with blanks",
            "STATIONMASTER_JOB_ROOT": str(self.jobs),
            "STATIONMASTER_HOST_KEYS": str(self.keys),
            "STATIONMASTER_CONTAINER_LOG": str(self.container_log),
            "STATIONMASTER_PROVIDER_URL": api.url,
            "STATIONMASTER_UPTIME": str(self.clock),
            "STATIONMASTER_GUARD_LOOK": "0.02",
        }

    def _put_counting_sleep(self, folder: Path) -> None:
        """Between two looks the guard sleeps: the only moment that can be seen from outside without a change to it."""
        folder.mkdir()
        program = folder / "sleep"
        program.write_text(f'#!/bin/sh\nprintf . >>"{self._looks}"\nexec /bin/sleep "$@"\n')
        program.chmod(0o755)

    def boot(self, public_key: str = PUBLIC_KEY) -> None:
        """Run the script as the service does; the guard goes on after this returns, and has read its clock once."""
        told, looked = self._told(), self._count()
        script = self.root / "onstart.sh"
        script.write_text(onstart_script(public_key))
        with self.output.open("ab") as output:
            process = subprocess.Popen(
                [*self._shell, str(script)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self.environment,
                start_new_session=True,
            )
        self._started.append(process)
        assert process.wait(timeout=150) == 0, self.output.read_text()
        until(lambda: self._told() > told or self._count() > looked)

    def halt(self) -> None:
        """No process of the script is left."""
        for process in self._started:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has already ended
        self._started.clear()

    def set_clock(self, seconds: int) -> None:
        fresh = self.root / "uptime.new"
        fresh.write_text(f"{seconds}.42 9999.99\n")
        fresh.rename(self.clock)

    def visit(self, seconds_alone: float) -> None:
        """Home was here: trackside tells the guard."""
        self._tell_guard("visit(root, alone_seconds=float(sys.argv[2]))", str(seconds_alone))

    def acknowledge(self) -> None:
        self._tell_guard("acknowledge(root)")

    def _tell_guard(self, call: str, *arguments: str) -> None:
        imports = "import sys; from trackside.machine.guard import *; from trackside.root import Root; "
        code = imports + "root = Root(sys.argv[1]); "
        job = str(self.jobs / "job-1")
        subprocess.run([sys.executable, "-c", code + call, job, *arguments], env=self.environment, check=True)

    def begin_step(self, job: str = "job-1") -> None:
        folder = self.jobs / job / ".trackside/steps/0.1"
        folder.mkdir(parents=True)
        (folder / "started").touch()

    def train(self, pid: int, job: str = "job-1") -> None:
        """The process `pid` is the training."""
        folder = self.jobs / job / ".trackside"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "training.pid").write_text(f"{pid}\n")

    def look(self) -> None:
        """The guard looks at least once from beginning to end, with everything as it is now."""
        before = self._count()
        until(lambda: self._count() >= before + 2)

    def _told(self) -> int:
        return self.output.read_text().count("sm-host-keys end") if self.output.exists() else 0

    def _count(self) -> int:
        return len(self._looks.read_bytes())
