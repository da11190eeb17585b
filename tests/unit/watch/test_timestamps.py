"""Times at the beginning of log lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.watch.timestamps import read_stamp, timed_pieces


@pytest.mark.parametrize(
    ("earlier", "later", "seconds"),
    [
        ("2026-03-02 11:05:10,250 INFO step 1", "2026-03-02 11:06:10,750 INFO step 2", 60.5),
        ("[2026-03-02T23:59:59Z] step 1", "[2026-03-03T00:00:01Z] step 2", 2.0),
        ("2026-03-02T12:00:00+02:00 a", "2026-03-02T10:00:05Z b", 5.0),
        ("03/02/2026 11:05:10 - INFO - a", "03/02/2026 11:05:12 - INFO - b", 2.0),
        ("03/02 11:05:10 - mmengine - INFO - a", "03/02 11:05:13 - mmengine - INFO - b", 3.0),
        ("Mar  2 11:05:10 a", "Mar  2 12:05:10 b", 3600.0),
        ("1772449510.5 a", "1772449512.0 b", 1.5),
        ("11:05:10 a", "[11:05:14] b", 4.0),
    ],
)
def test_a_stamp_is_read_in_every_usual_shape(earlier: str, later: str, seconds: float) -> None:
    first, second = read_stamp(earlier), read_stamp(later)
    assert first is not None
    assert second is not None
    assert second - first == pytest.approx(seconds)


@pytest.mark.parametrize("line", ["step 1", "  5%|#  | 5/100 [00:10<03:10, 2.00s/it]", "99:99:99 x", "Epoch 3/5", ""])
def test_a_line_without_a_time_has_none(line: str) -> None:
    assert read_stamp(line) is None


def test_midnight_is_passed_and_pieces_carry_the_last_time() -> None:
    text = "23:59:50 step 1\nno time here\r redraw\n00:00:10 step 2\n"
    assert [at for at, _ in timed_pieces(text)] == [0.0, 0.0, 0.0, 20.0]


def test_what_a_recorder_put_before_the_line_is_taken_off() -> None:
    assert timed_pieces("1772449510.5 Step 3: Loss = 0.4\n") == [(0.0, "Step 3: Loss = 0.4\n")]


def test_a_log_without_times_has_no_pieces() -> None:
    assert timed_pieces("step 1\nstep 2\n") == []


@given(st.text(max_size=300))
def test_no_text_raises_and_time_never_runs_back(text: str) -> None:
    times = [at for at, _ in timed_pieces(text)]
    assert times == sorted(times)
