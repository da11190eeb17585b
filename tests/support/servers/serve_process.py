"""`stationmaster serve` and `stationmaster up` as processes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands.command_line import command_server


@dataclass(kw_only=True)
class ServeProcess:
    """`out` and `err` are complete when the process has ended."""

    process: subprocess.Popen[str]
    home: Path
    url: str
    link: str | None
    announced: str
    out: str = ""
    err: str = ""

    @property
    def token(self) -> str:
        return (self.home / "serve.token").read_text().strip()

    @property
    def code(self) -> str:
        assert self.link is not None
        return self.link.partition("#")[2]

    def wait_for(self, word: str) -> None:
        """Until its log says this."""
        assert self.process.stderr is not None
        while word not in self.err:
            line = self.process.stderr.readline()
            assert line, f"it ended without saying {word}: {self.err}"
            self.err += line

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=150)
        self.out, self.err = self.announced + out, self.err + err
        return self.process.returncode


@contextmanager
def served(
    home: Path,
    *arguments: str,
    command: str = "serve",
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
    with_link: bool = True,
    **settings: str,
) -> Iterator[ServeProcess]:
    """The process, once it answers. `settings` are environment variables without their prefix."""
    argv = [command_server().own_command, "--home", str(home), *arguments, command, "--port", "0", *options]
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        **(variables or {}),
        **{f"STATIONMASTER_{name}": value for name, value in settings.items()},
    }
    with subprocess.Popen(
        argv, env=environ, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        if not lines[0].startswith("stationmaster answers at "):
            process.kill()
            raise AssertionError(f"it did not start: {lines[0]}{process.communicate()}")
        if with_link:
            lines += [process.stdout.readline(), process.stdout.readline()]
        try:
            yield ServeProcess(
                process=process,
                home=home,
                url=lines[0].split()[-1],
                link=lines[1].split()[-1] if with_link else None,
                announced="".join(lines),
            )
        finally:
            if process.poll() is None:
                process.terminate()
