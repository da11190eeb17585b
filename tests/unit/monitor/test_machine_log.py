"""The log of a machine: values and lines do not depend on how it was cut, and nothing grows for days."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.control.monitoring.instance_metrics import InstanceMetrics
from stationmaster.control.monitoring.machine_log import MachineLog
from tests.support.monitoring.scripted_source import piece

NEW = InstanceMetrics(id="1")


def read(*data: bytes, log: MachineLog | None = None) -> InstanceMetrics:
    log = log or MachineLog()
    metrics = NEW
    for number, each in enumerate(data):
        metrics = log.add(piece(each, offset=number, continues=number > 0), metrics)
    return metrics


def test_only_the_last_ten_lines_are_kept_and_redraws_are_shown_as_a_terminal_would() -> None:
    bars = b"".join(b"\r 10%%|#  | %d/100 [00:01<00:09, loss=1.%d]" % (step, step) for step in range(1, 11))
    machine = read(b"\n".join(b"line %d" % number for number in range(15)) + b"\n" + bars)
    assert (len(machine.logs), machine.logged_lines) == (10, 16)
    assert machine.logs[0] == "line 6"
    assert machine.logs[-1] == " 10%|#  | 10/100 [00:01<00:09, loss=1.10]"
    assert (machine.step, machine.total_steps) == (10, 100)


@given(st.lists(st.integers(0, 60), max_size=6))
def test_lines_and_values_do_not_depend_on_where_the_log_was_cut(cuts: list[int]) -> None:
    text = b"Epoch 2/3\nStep 10/100: Loss = 2.0\r\n\nbar 1\rbar 2\nStep 11/100: Loss = 1.5\nunended"
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [text[start:end] for start, end in itertools.pairwise(places)]
    whole, cut = read(text), read(*parts)
    assert (cut.logs, cut.logged_lines, cut.step, cut.loss) == (whole.logs, whole.logged_lines, whole.step, whole.loss)
    assert whole.logs == (
        "Epoch 2/3",
        "Step 10/100: Loss = 2.0",
        "bar 2",
        "Step 11/100: Loss = 1.5",
        "unended",
    )


def test_markup_and_brackets_stay_as_they_are() -> None:
    assert read(b"[red]not markup[/red] [1/3]\n").logs == ("[red]not markup[/red] [1/3]",)


def test_a_counter_of_epochs_is_remembered_when_its_line_has_left_the_tail() -> None:
    first = read(b"Epoch 2/3\nStep 10/100: Loss = 2.0\n")
    log = MachineLog()
    log.add(piece(b"Epoch 2/3\nStep 10/100: Loss = 2.0\n"), NEW)
    second = log.add(piece(b"Step 20/100: Loss = 2.0\nStep 21/100: Loss = 2.0\n"), first)
    shares = [machine.progress_percentage() for machine in (first, second)]
    assert shares == [100 * 110 / 300, 100 * 121 / 300]


def test_another_file_is_another_training() -> None:
    log = MachineLog()
    before = log.add(piece(b"Epoch 2/3\nStep 10/100: Loss = 2.0\n", file="a"), NEW)
    after = log.add(piece(b"Loading model\n", file="b"), before)
    assert (after.epoch, after.step, after.loss) == (None, None, None)
    assert after.logs == ("Epoch 2/3", "Step 10/100: Loss = 2.0", "Loading model")


def test_cleared_lines_do_not_come_back_and_new_ones_are_shown() -> None:
    log = MachineLog()
    before = log.add(piece(b"one\ntwo\nunend"), NEW)
    log.clear()
    after = log.add(piece(b"ed\nthree\n", continues=True), before)
    assert (after.logs, after.logged_lines) == (("ed", "three"), 4)


def test_bytes_without_a_line_s_end_do_not_fill_the_memory() -> None:
    log = MachineLog()
    metrics = NEW
    for _ in range(20):
        metrics = log.add(piece(b"x" * 10_000, continues=True), metrics)
    assert max(len(line) for line in metrics.logs) <= 1000
    assert len(log._reader.state()["pending"]) < 40_000
    bars = MachineLog()
    for step in range(300):
        metrics = bars.add(piece(b"\r%d/9999 [00:01<00:09, 1.00it/s]" % step, continues=step > 0), NEW)
    assert (metrics.step, metrics.logged_lines) == (299, 1)
    assert len(bars._unended) < 100
