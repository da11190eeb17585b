"""Several test processes after one collection: `pytest --processes 6`.

Collecting takes half a minute of processor time, so it happens once. Then processes are forked; each asks for a file,
runs its tests and sends their reports. A process that dies fails the test it ran, and another one takes the rest.
"""

from __future__ import annotations

import os
import random
import signal
import time
import traceback
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import Any, TypeAlias
from uuid import uuid4

import pytest

TEST_RUN = "PYTEST_TEST_RUN"
"""The variable with the id that all processes of a run share."""

_MORE = "more"
_BROKEN = 70  # exit status of a process that could not go on
_CLEARING_SECONDS = 60.0  # for servers and machines of an interrupted test; then its process is ended

Channel: TypeAlias = "Connection[Any, Any]"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=1, metavar="N", help="run test files in N processes")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all files in forked processes; None leaves the run to pytest itself."""
    processes = session.config.getoption("--processes")
    if processes < 2 or session.config.option.collectonly or session.testsfailed:
        return None
    _ParallelRun(session).finish(processes)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)
    return True


@dataclass(slots=True, eq=False)
class _Process:
    """A forked process, as its parent sees it."""

    number: int
    pid: int
    channel: Channel
    given: deque[int] = field(default_factory=deque)  # positions of tests that are not reported yet


class _ParallelRun:
    """The parent's side: hands out files, and reports what comes back."""

    def __init__(self, session: pytest.Session) -> None:
        self._session = session
        numbered = enumerate(session.items)
        self._files = deque([at for at, _ in tests] for _, tests in groupby(numbered, key=lambda one: one[1].path))
        self._processes: dict[Channel, _Process] = {}
        self._unreported = len(session.items)

    def finish(self, processes: int) -> None:
        _folders(self._session.config).getbasetemp()  # made once, and removed by this process at the end
        os.environ[TEST_RUN] = uuid4().hex
        try:
            for number in range(min(processes, len(self._files))):
                self._fork(number)
            while self._processes:
                for channel in wait(list(self._processes)):
                    self._hear(self._processes[channel])  # type: ignore[index]  # what is waited for are our channels
        finally:
            left = list(self._processes.values())  # after an interrupt, which they have got as well
            for process in left:
                process.channel.close()
            ends = time.monotonic() + _CLEARING_SECONDS
            for process in left:
                _await_end(process.pid, ends)
                self._leave(process)
        if self._unreported and not self._is_over():
            raise RuntimeError(f"{self._unreported} tests were collected and have no result")

    def _is_over(self) -> bool:
        return bool(self._session.shouldfail or self._session.shouldstop)

    def _fork(self, number: int) -> None:
        ours, theirs = Pipe()
        if pid := os.fork():
            theirs.close()
            self._processes[ours] = _Process(number, pid, ours)
            return
        status = _BROKEN
        try:
            for process in self._processes.values():
                process.channel.close()
            ours.close()
            _run_files(self._session, theirs, number)
            status = 0
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would leave servers behind
        except BaseException:
            traceback.print_exc()
        finally:
            _clear_away(self._session)
            os._exit(status)  # the rest of pytest's run belongs to the parent

    def _hear(self, process: _Process) -> None:
        try:
            said = process.channel.recv()
        except (EOFError, ConnectionResetError):
            self._replace(process)
            return
        if said == _MORE:
            tests = [] if self._is_over() or not self._files else self._files.popleft()
            process.given.extend(tests)
            process.channel.send(tests)
        else:
            self._report(process, said)

    def _report(self, process: _Process, said: list[dict[str, Any]]) -> None:
        config = self._session.config
        test = self._session.items[process.given.popleft()]
        self._unreported -= 1
        config.hook.pytest_runtest_logstart(nodeid=test.nodeid, location=test.location)
        for data in said:
            report = config.hook.pytest_report_from_serializable(config=config, data=data)
            config.hook.pytest_runtest_logreport(report=report)
        config.hook.pytest_runtest_logfinish(nodeid=test.nodeid, location=test.location)

    def _replace(self, process: _Process) -> None:
        """A process has ended. One that owes reports has died in its next test; a new one runs the rest."""
        status = self._leave(process)
        if status == 0 and (not process.given or self._is_over()):
            return
        if not process.given:
            raise RuntimeError(f"test process {process.number} ended with status {status} after its tests")
        test = self._session.items[process.given.popleft()]
        why = f"test process {process.number} ended with status {status} in this test"
        report = pytest.TestReport(test.nodeid, test.location, {}, "failed", why, "call")
        self._session.config.hook.pytest_runtest_logreport(report=report)
        self._unreported -= 1
        if process.given:
            self._files.appendleft(list(process.given))
        if self._files:
            self._fork(process.number)

    def _leave(self, process: _Process) -> int:
        del self._processes[process.channel]
        process.channel.close()
        return os.waitstatus_to_exitcode(os.waitpid(process.pid, 0)[1])


def _run_files(session: pytest.Session, channel: Channel, number: int) -> None:
    """The forked side: ask for a file, run its tests, send their reports, until no file is left."""
    _settle(session.config, number)
    session.config.pluginmanager.register(_Reporter(session.config, channel))
    waiting = _more(channel)
    while waiting and not session.shouldfail:
        test = session.items[waiting.popleft()]
        if not waiting:  # before the last test, whose teardown must know which fixtures the next file shares
            waiting = _more(channel)
        following = session.items[waiting[0]] if waiting else None
        session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)


def _clear_away(session: pytest.Session) -> None:
    """End what the fixtures of an interrupted test have started, as pytest does at the end of its session."""
    try:
        session._setupstate.teardown_exact(None)
    except BaseException:
        traceback.print_exc()


def _await_end(pid: int, ends: float) -> None:
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > ends:
            os.kill(pid, signal.SIGTERM)
            return
        time.sleep(0.05)


def _more(channel: Channel) -> deque[int]:
    channel.send(_MORE)
    return deque(channel.recv())


def _settle(config: pytest.Config, number: int) -> None:
    """Give a forked process its own captured output, folder and random numbers; the terminal belongs to the parent."""
    os.environ["PYTEST_PROCESS"] = str(number)
    random.seed()
    config.pluginmanager.unregister(name="terminalreporter")
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    capture.stop_global_capturing()
    capture.start_global_capturing()
    folders = _folders(config)
    folders._basetemp = folders.getbasetemp() / f"process-{number}"
    folders._basetemp.mkdir(mode=0o700, exist_ok=True)


def _folders(config: pytest.Config) -> Any:
    return config._tmp_path_factory  # type: ignore[attr-defined]  # pytest has no public way to it


class _Reporter:
    """Sends what a test has to report when it is over. That it was set up and cleared away is told only on request."""

    def __init__(self, config: pytest.Config, channel: Channel) -> None:
        self._config = config
        self._channel = channel
        self._tells_all = config.getoption("durations") is not None
        self._reports: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed or self._tells_all:
            told = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
            self._reports.append(told)

    def pytest_runtest_logfinish(self) -> None:
        self._channel.send(self._reports)
        self._reports = []
