"""What holds for every test: no skip without a listed reason, and none at all where everything must be there."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
import structlog
from hypothesis import HealthCheck, Phase, settings

from tests.support.capabilities import SKIP_MARK
from tests.support.servers.postgres import PostgresServer
from tests.support.servers.s3_servers import S3Server, rclone_s3, seaweed_s3
from tests.support.temporary_files import folder_in_memory

pytest_plugins = ["tests.support.parallel_run"]

# A shared machine may be slow for a moment; what is promised is the result, not the time.
# The examples are the same each time, so that nobody's run fails by luck; `make test-slow` draws new ones, and many.
_SUITE = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[phase for phase in Phase if phase is not Phase.explain],  # explaining traces every example
    print_blob=True,
    derandomize=True,
)
settings.register_profile("suite", _SUITE)
settings.register_profile("slow", _SUITE, max_examples=500, derandomize=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that take long")
    parser.addoption("--live", action="store_true", help="run contract suites against real services")


def pytest_configure(config: pytest.Config) -> None:
    if folder := folder_in_memory(os.environ):
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)  # also for every program that a test starts
    settings.load_profile("slow" if config.getoption("--slow") else "suite")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So it is for a run in the background of a script, and every command that a test interrupts would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Logs go where this test's output goes: a command that ran inside this process leaves them to a closed stream."""
    structlog.reset_defaults()
    # The default draws every local variable of a traceback, which takes many seconds for one error.
    structlog.configure(
        processors=[
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
        ]
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests belong to `make test-slow`: left out by selection, not skipped."""
    if config.getoption("--slow"):
        return
    slow = [item for item in items if item.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Half a million objects of modules and tests live to the end: no collection of garbage needs to look at them."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        reason = str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if SKIP_MARK not in reason or os.environ.get("CI"):
            report.outcome = "failed"
            report.longrepr = f"a skip counts as a failure here: {reason}"
    return report


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One real PostgreSQL server for the session; each test makes its own database in it.

    Not in pytest's own folder: another session that starts takes away the server's right to pass through it.
    """
    folder = tempfile.TemporaryDirectory(prefix="postgres-", ignore_cleanup_errors=True)
    with folder as name, PostgresServer(Path(name)) as server:
        yield server


@pytest.fixture(scope="session")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A bucket that believes what it is told: neither conditions nor checksums are looked at."""
    with rclone_s3(tmp_path_factory.mktemp("rclone") / "buckets") as server:
        yield server


@pytest.fixture(scope="session")
def seaweed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A bucket that enforces conditions, checksums, signed lengths and expiry."""
    with seaweed_s3(tmp_path_factory.mktemp("weed")) as server:
        yield server
