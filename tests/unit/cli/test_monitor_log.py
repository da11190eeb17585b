"""The monitor's log: one line per warning and notice, in a file under the app, and nothing that a machine can forge."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.cli.monitor_log import LoggedFeed, log_to_file, log_to_stderr
from stationmaster.station.monitoring import InstancesSummary, MonitorLook, Notice, NoticeKind, Snapshot

LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - stationmaster\.monitor - WARNING - (.+)")
_NOTHING = InstancesSummary(
    running=0, instances=0, errors=0, total_cost=0, cost_per_hour=0, average_cost_per_hour=0,  # type: ignore[arg-type]
    average_gpu_percent=None, average_memory_percent=None, trajectory=(),
)  # fmt: skip


class OneLook:
    """A feed with one look."""

    groups = ()

    def __init__(self, look: MonitorLook) -> None:
        self._look = look

    def next(self, *, seconds: float) -> MonitorLook | None:
        return self._look

    def refresh(self) -> None:
        """Nothing to look at."""

    def set_paused(self, paused: bool) -> None:
        """Nothing goes on."""

    def clear_logs(self) -> None:
        """There are none."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in set(root.handlers) - set(handlers):
        handler.close()
    root.handlers, root.level = handlers, level


def feed() -> LoggedFeed:
    snapshot = Snapshot(at=1.0, instances=(), summary=_NOTHING, stale=False)
    notices = tuple(
        Notice(at=1.0, instance="7", kind=kind, sentence=f"Instance 7 {kind.value}.")
        for kind in (NoticeKind.EPOCH, NoticeKind.EXITED)
    )
    return LoggedFeed(
        OneLook(MonitorLook(snapshot=snapshot, warnings=("100% of it:\n\x1b[2Jforged",), notices=notices))
    )


def test_lines_have_time_logger_level_and_message_and_cannot_be_forged(capsys: pytest.CaptureFixture[str]) -> None:
    log_to_stderr(None)
    assert feed().next(seconds=0.0) is not None
    warning, notice = capsys.readouterr().err.splitlines()
    found = [LINE.fullmatch(line) for line in (warning, notice)]
    assert [each and each[1] for each in found] == ["100% of it:\\n\\x1b[2Jforged", "Instance 7 exited."]


def test_under_the_app_they_are_in_a_file_that_appears_with_the_first_line(tmp_path: Path) -> None:
    file = tmp_path / "home" / "monitor.log"
    log_to_file(file, "INFO")
    assert not file.parent.exists()
    feed().next(seconds=0.0)
    assert len(file.read_text().splitlines()) == 3
    assert file.parent.stat().st_mode & 0o777 == 0o700


def test_made_up_machines_are_logged_nowhere(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log_to_file(None, None)
    feed().next(seconds=0.0)
    assert capsys.readouterr().err == ""
