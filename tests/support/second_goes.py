"""A second go for tests of real processes on a real clock: at most one in a run, named at its end with its failure."""

from __future__ import annotations

from pathlib import Path

import pytest

#: What runs servers, machines and trainings, and so depends on what else the computer does meanwhile.
WHOLE_SYSTEM = ("acceptance", "contract", "docs", "integration")
#: More of them in one run are no accident, and fail it.
ALLOWED = 1


class SecondGoes:
    """Marks the tests that may have one, and fails the run when too many of them needed it."""

    def __init__(self) -> None:
        self._needed: list[pytest.TestReport] = []

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        if config.getoption("--live") or not hasattr(config, "workerinput"):
            return  # it would cost somebody's money, or somebody is looking at this very test, with nothing beside it
        for item in items:
            if _group(item.path, config.rootpath) in WHOLE_SYSTEM:
                item.add_marker(pytest.mark.flaky(reruns=1))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if str(report.outcome) == "rerun":
            self._needed.append(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if len(self._needed) > ALLOWED and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for report in self._needed:
            terminalreporter.section(f"needed a second go: {report.nodeid}")
            terminalreporter.write_line(report.longreprtext)
        if len(self._needed) > ALLOWED:
            too_many = f"{len(self._needed)} tests needed a second go, more than the {ALLOWED} that count as accidents"
            terminalreporter.write_line(too_many, red=True)


def _group(path: Path, root: Path) -> str:
    """
    >>> _group(Path("/x/tests/acceptance/net/test_a.py"), Path("/x"))
    'acceptance'
    """
    parts = path.relative_to(root).parts
    return parts[1] if len(parts) > 1 else ""
