"""Rented machines as rows."""

from __future__ import annotations

import pytest

from stationmaster.station.monitoring import InstanceMetrics, Notice, NoticeKind
from stationmaster.tui.fleet import Tone
from stationmaster.tui.sources.log_ring import LINES_EACH, LogRing
from stationmaster.tui.sources.machine_history import PointHistory
from stationmaster.tui.sources.machine_rows import machine_row, shown_notice


@pytest.mark.parametrize(
    ("status", "icon"), [("running", "✅"), ("loading", "🔄"), ("exited", "❌"), ("created", "⏳")]
)
def test_each_status_has_its_icon(status: str, icon: str) -> None:
    assert machine_row(InstanceMetrics(id="1", status=status), now=0.0).icon == icon


def test_health_is_the_tone_and_has_its_reason() -> None:
    idle = machine_row(InstanceMetrics(id="1", gpu_percent=3.0), now=0.0)
    assert (idle.tone, idle.note) == (Tone.WARNING, "its GPU is idle (3%)")
    assert machine_row(InstanceMetrics(id="1", gpu_percent=50.0), now=0.0).tone is Tone.GOOD
    assert machine_row(InstanceMetrics(id="1", status="exited"), now=0.0).tone is Tone.BAD
    assert machine_row(InstanceMetrics(id="1", status="loading"), now=0.0).tone is Tone.NEUTRAL


@pytest.mark.parametrize(
    ("age", "words"), [(35.0, "35s old"), (125.0, "2m old"), (7300.0, "2h old"), (200_000.0, "2d old")]
)
def test_old_values_show_their_age(age: float, words: str) -> None:
    row = machine_row(InstanceMetrics(id="1", seen_at=1000.0, stale=True), now=1000.0 + age)
    assert (row.status, row.is_old) == (words, True)


def test_a_notice_has_the_tone_of_what_it_tells() -> None:
    told = Notice(at=0.0, instance="1", kind=NoticeKind.EXITED, sentence="it exited")
    assert shown_notice(told, {}).tone is Tone.BAD
    told = Notice(at=0.0, instance="1", kind=NoticeKind.EPOCH, sentence="epoch 1")
    assert shown_notice(told, {}).tone is Tone.GOOD


def test_a_loud_machine_does_not_push_out_the_others() -> None:
    ring = LogRing()
    ring.add("quiet", ["one"])
    ring.add("loud", [str(number) for number in range(100)])
    ids = [entry.id for entry in ring.entries()]
    assert ids == ["quiet", *["loud"] * LINES_EACH]
    ring.keep({"loud"})
    assert {entry.id for entry in ring.entries()} == {"loud"}


def test_days_of_values_keep_their_extremes_in_little_memory() -> None:
    history = PointHistory()
    for second in range(200_000):
        history.add(float(second), 99.0 if second == 1234 else 1.0)
    assert len(history.x) <= 512
    assert max(history.y) == 99.0
    assert (history.x[0], history.x[-1]) == (0.0, 199_999.0)
    history.begin_with([-2.0, -1.0, 5.0], [7.0, None, 8.0])
    assert (history.x[0], history.y[0]) == (-2.0, 7.0)
    assert list(history.x) == sorted(history.x)
