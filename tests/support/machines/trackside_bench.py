"""A job's root with a real trackside.pyz in it, for tests that run real processes."""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import subprocess
import sys
import zipapp
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import IO, Any

import trackside
from stationmaster.remote.pyz import pyz_bytes
from tests.support.commands.fork_server import ForkServer
from tests.support.commands.server_folder import ARCHIVE
from tests.support.killing import kill
from tests.support.waiting import until

PACKAGE = Path(trackside.__file__).parent
DEADLINE_SECONDS = 150.0


@cache
def interpreters() -> tuple[str, ...]:
    """One Python for each of 3.8 to 3.13 that this computer has; at least our own."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python3")):
        found.setdefault(_version_of(path), str(path))
    for wanted in (f"3.{number}" for number in range(8, 14)):
        if wanted not in found and (other := shutil.which(f"python{wanted}")) and _version_of(other) == wanted:
            found[wanted] = other
    versions = (version for version in found if re.fullmatch(r"3\.(8|9|10|11|12|13)", version))
    return tuple(found[version] for version in sorted(versions, key=lambda text: int(text.split(".")[1])))


def _version_of(python: str | Path) -> str:
    """Such as 3.8; empty if it does not run."""
    tell = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([python, "-c", tell], capture_output=True, text=True, check=False).stdout.strip()


def build_source_pyz(folder: Path) -> Path:
    """trackside as a Python sees it that is not home's: without compiled code."""
    source = folder / "pyz-source"
    shutil.copytree(PACKAGE, source / "trackside", ignore=shutil.ignore_patterns("__pycache__"))
    (source / "__main__.py").write_text("import sys\nfrom trackside.__main__ import main\n\nsys.exit(main())\n")
    target = folder / "trackside.pyz"
    zipapp.create_archive(source, target, compressed=True)
    return target


def step(name: str, script: str, **more: Any) -> dict[str, Any]:
    """A step that runs a few lines of shell."""
    return {"name": name, "argv": ["/bin/sh", "-c", script], **more}


class Serving:
    """A trackside that is kept running; its verbs run in forks, without a start of Python for each."""

    def __init__(self, command: list[str], root: Path, environment: dict[str, str]) -> None:
        self.environment = dict(environment)
        serve = [*command, "--root", str(root), "serve", "--token", "ready", "--idle", "600"]
        self._process = subprocess.Popen(serve, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment)
        self.is_ready = self._out.readline() == b"ready\n"

    def run(self, argv: tuple[str, ...], stdin: bytes) -> subprocess.CompletedProcess[bytes] | None:
        """The verb's result; None when it ended, as it does when the archive was replaced."""
        request = {"argv": argv, "input": len(stdin), "most": 1 << 26}
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n" + stdin)
            self._process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self._out.readline()
        if not line:
            return None
        head = json.loads(line)
        stdout, stderr = self._out.read(head["stdout"]), self._out.read(head["stderr"])
        return subprocess.CompletedProcess(argv, head["status"], stdout, stderr)

    def end(self) -> None:
        try:
            self._process.communicate(timeout=DEADLINE_SECONDS)
        except BrokenPipeError:
            self._process.wait(timeout=DEADLINE_SECONDS)

    @property
    def _out(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout


@cache
def trackside_server() -> TracksideServer:
    """The one server of all processes of this test run, which ends with the last of them."""
    return TracksideServer("trackside", "machines.trackside_server")


class TracksideServer(ForkServer):
    """A process that has imported the shipped trackside; each verb is a child of it."""

    @property
    def archive(self) -> Path:
        return self.folder / ARCHIVE

    @property
    def python(self) -> str:
        """A program that runs an archive of trackside as Python does; a child of this server does the work."""
        return str(self.folder / "python")

    def prepare(self) -> None:
        self.archive.write_bytes(pyz_bytes())
        self.write_client(self.folder / "python")


class Bench:
    """One job's root and the verbs on it."""

    def __init__(self, root: Path, *, pyz: Path | None, python: str = sys.executable, is_forked: bool = False) -> None:
        """With `is_forked` no Python is started: `pyz` must be the shipped one, and stay."""
        self.root = root
        self.is_forked = is_forked
        self.own = root / ".trackside"
        self.environment = {**os.environ}
        self._serving: Serving | None = None
        root.mkdir(parents=True, exist_ok=True)
        if pyz is not None:
            shutil.copy(pyz, root / "trackside.pyz")
        self.command = [python, str(root / "trackside.pyz")] if pyz is not None else [python, "-m", "trackside"]

    @property
    def python(self) -> str:
        """The program that runs its archive."""
        return trackside_server().python if self.is_forked else self.command[0]

    def plan(self, *steps: dict[str, Any], **more: Any) -> None:
        record = {"format": 1, "job": "j", "attempt": 1, "steps": list(steps), **more}
        (self.root / "plan.json").write_text(json.dumps(record))

    def run(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a verb, in a fork of a trackside that is kept running, for all benches or for this one."""
        if self.is_forked:
            words = [*self.command[1:], "--root", str(self.root), *arguments]
            return trackside_server().run(
                words, environ=self.environment, cwd=Path.cwd(), seconds=DEADLINE_SECONDS, stdin=stdin
            )
        if self._serving is not None and self._serving.environment != self.environment:
            self.end_serving()
        if self._serving is None:
            self._serving = Serving(self.command, self.root, self.environment)
        done = self._serving.run(arguments, stdin) if self._serving.is_ready else None
        if done is None:
            self.end_serving()
            return self.run_alone(*arguments, stdin=stdin)
        return done

    def end_serving(self) -> None:
        serving, self._serving = self._serving, None
        if serving is not None:
            serving.end()

    def run_alone(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run a verb in a Python of its own."""
        return subprocess.run(
            [*self.command, "--root", str(self.root), *arguments],
            input=stdin,
            capture_output=True,
            env=self.environment,
            timeout=DEADLINE_SECONDS,
            check=False,
        )

    def call(self, *arguments: str, stdin: bytes = b"") -> Any:
        answer = self.run(*arguments, stdin=stdin)
        assert answer.returncode == 0, answer.stderr.decode()
        return json.loads(answer.stdout)

    def popen(self, *arguments: str, **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*self.command, "--root", str(self.root), *arguments], env=self.environment, **more)

    def start(self, **secrets: str) -> Any:
        if secrets:
            return self.call("start", "--secrets-stdin", stdin=json.dumps({"secrets": secrets}).encode())
        return self.call("start")

    def status(self, since: dict[str, Any] | None = None, *more: str) -> Any:
        return self.call("status", *(["--since", json.dumps(since)] if since is not None else []), *more)

    def until_finished(self) -> Any:
        return until(lambda: (seen := self.status())["finished"] and seen, "the plan's end")

    def state_on_disk(self) -> dict[str, Any]:
        """What the supervisor wrote last; empty before its first turn."""
        path = self.own / "state.json"
        found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
        return found

    def verdict_on_disk(self, index: int = 0, number: int = 1) -> dict[str, Any]:
        """Wait for it: a status judges an ended try before the supervisor writes its verdict."""
        path = self.own / "steps" / f"{index}.{number}" / "verdict.json"
        until(path.exists, "the verdict on disk")
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def until_running(self, index: int = 0, number: int = 1) -> Any:
        def running() -> Any:
            found = self.status()["steps"][index]
            return found if found["state"] == "running" and found["try"] == number and found["pid"] else None

        return until(running, f"step {index} running")

    def text(self) -> str:
        return self.run("logs").stdout.decode()

    def supervisor_pid(self) -> int:
        return int(json.loads((self.own / "supervisor.lock").read_text())["pid"])

    def recorder_pid(self) -> int:
        """The pid of the recorder, once it runs."""
        lock = self.own / "recorder.lock"
        return int(
            until(lambda: lock.exists() and lock.read_text() and json.loads(lock.read_text())["pid"], "a recorder")
        )

    def shim_pid(self, index: int = 0, number: int = 1) -> int:
        return int(json.loads((self.own / "steps" / f"{index}.{number}" / "started").read_text())["shim"]["pid"])

    def kill_supervisor(self) -> None:
        kill(self.supervisor_pid())
        until(lambda: not self.status()["supervisor"]["alive"], "the supervisor's death")

    def clean_up(self) -> None:
        """End what this bench started: the stop keeps a shim on its way from beginning, the noted pids get the rest."""
        self.run("stop", "--grace", "0")
        self.end_serving()
        parts = (self.own, self.own / "cleanup")
        names = ("supervisor.lock", "recorder.lock", "steps/*/started", "steps/*/process.json")
        noted = [path for part in parts for name in names for path in part.glob(name)]
        for path in noted:
            if path.exists() and path.stat().st_size:
                record = json.loads(path.read_text())
                process = record.get("shim", record)
                if process and is_that_process(process):
                    kill(process["pid"])


@contextmanager
def bench(root: Path, **more: Any) -> Iterator[Bench]:
    made = Bench(root, **more)
    try:
        yield made
    finally:
        made.clean_up()


def log_bytes(status: dict[str, Any], stream: str = "0.1") -> bytes:
    return b"".join(base64.b64decode(entry["data"]) for entry in status["log"] if entry["stream"] == stream)


def seen_so_far(since: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    """The next --since, as home keeps it."""
    log = {entry["stream"]: {"inode": entry["inode"], "offset": entry["end"]} for entry in status["log"]}
    read = {entry["table"]: entry["last"] for entry in status["series"]}
    return {**since, "log": {**since.get("log", {}), **log}, "series": {**since.get("series", {}), **read}}


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def until_dead(pid: int) -> None:
    until(lambda: not is_alive(pid), f"the end of process {pid}")


def is_that_process(record: dict[str, Any]) -> bool:
    try:
        fields = Path(f"/proc/{record['pid']}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return False
    return bool(fields[19] == record["start_time"])
