"""Retries failed tests of real processes on a real clock: at most one in a run, listed at the end with its failure."""

from __future__ import annotations

from pathlib import Path

import pytest

#: Groups that run servers, machines and trainings, and so depend on the computer's other load.
WHOLE_SYSTEM = ("acceptance", "contract", "docs", "integration", "page")
#: More retries than this fail the run.
ALLOWED = 1


class RetriedTests:
    """Marks the tests that may be retried, and fails the run if too many were."""

    def __init__(self) -> None:
        self._retried: list[pytest.TestReport] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if config.getoption("--live") or not hasattr(config, "workerinput"):
            return  # a live test costs money, and a run without parallel tests needs no retry
        for item in items:
            if _group(item.path, config.rootpath) in WHOLE_SYSTEM:
                item.add_marker(pytest.mark.flaky(reruns=1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":
            self._retried.append(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self._retried) > ALLOWED and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for report in self._retried:
            terminalreporter.section(f"was retried: {report.nodeid}")
            terminalreporter.write_line(report.longreprtext)
        if len(self._retried) > ALLOWED:
            too_many = f"{len(self._retried)} tests were retried, at most {ALLOWED} may be"
            terminalreporter.write_line(too_many, red=True)


def _group(path: Path, root: Path) -> str:
    """
    >>> _group(Path("/x/tests/acceptance/net/test_a.py"), Path("/x"))
    'acceptance'
    """
    parts = path.relative_to(root).parts
    return parts[1] if len(parts) > 1 else ""
