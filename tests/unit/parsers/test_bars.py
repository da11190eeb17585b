"""The many shapes of progress bars."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.parsers.bars import Bar, split_bars


def only_bar(text: str) -> Bar:
    (bar,) = split_bars(text)
    assert isinstance(bar, Bar)
    return bar


@pytest.mark.parametrize(
    ("text", "description", "step", "total", "eta", "rate"),
    [
        ("steps:  50%|█████     | 5/10 [00:10<00:11,  2.00s/it, avr_loss=0.1]", "steps", 5, 10, 11, 0.5),
        ("5%|5         | 1/20 [00:10<3:10:00, 10.0s/it]", "", 1, 20, 11400, 0.1),
        ("steps:   5% 230/4920 [04:13<1:26:05,  1.25it/s, loss=0.157]", "steps", 230, 4920, 5165, 1.25),
        ("Progress:|##   | 21% 315/1500 [04:12<15:48,  1.25it/s]", "Progress", 315, 1500, 948, 1.25),
        ("Epoch 0: |          | 5/? [01:27<00:00,  0.06it/s, v_num=0]", "Epoch 0", 5, None, None, 0.06),
        ("37it [00:12,  3.05it/s]", "", 37, None, None, 3.05),
        ("[ 120/900 01:10 < 07:40, 1.70 it/s, Epoch 4/30]", "", 120, 900, 460, 1.7),
        ("Epoch 1/1, Steps: 50%| 1/2 [00:03<00:03, lr=5e-5]", "Epoch 1/1, Steps", 1, 2, 3, None),
        ("Train: 11%|████        | 3/27 [01:52<14:28, 36.0s/it", "Train", 3, 27, 868, 1 / 36),
        ("  0%|        | 0/111 [00:00<?, ?", "", 0, 111, None, None),
        ("Epoch 2/9 ━━━━━━╸━━━━ 25/100 0:00:10 • 0:00:30 2.50it/s loss: 1", "Epoch 2/9", 25, 100, 30, 2.5),
        ("model.bin: 100%|███| 3.09G/3.09G [01:18<00:00, 39.3MB/s]", "model.bin", None, None, 0, None),
    ],
)
def test_a_bar_is_read_in_any_of_its_shapes(
    text: str, description: str, step: int | None, total: int | None, eta: float | None, rate: float | None
) -> None:
    bar = only_bar(text)
    assert (bar.description, bar.step, bar.total, bar.eta_seconds) == (description, step, total, eta)
    assert bar.rate == pytest.approx(rate) if rate is not None else bar.rate is None


def test_a_message_glued_to_a_bar_is_a_text_of_its_own() -> None:
    bar, message = split_bars("10%|#  | 1/10 [00:01<00:09, 1.00it/s]Saving model checkpoint to out/checkpoint-1")
    assert isinstance(bar, Bar)
    assert message == "Saving model checkpoint to out/checkpoint-1"


def test_several_bars_on_one_line_are_told_apart_even_when_cut() -> None:
    parts = split_bars(
        "steps: 99%|# | 161/162 [14:38<00:05,  steps: 100%|#| 162/162 [14:43<00:00,  "
        "val steps: 9%|#| 8/88 [09:22<00:00, 6it/s]"
    )
    assert [(part.description, part.step) for part in parts if isinstance(part, Bar)] == [
        ("steps", 161),
        ("steps", 162),
        ("val steps", 8),
    ]


def test_a_log_line_over_the_end_of_a_bar_does_not_lend_its_year_to_the_loss() -> None:
    bar, message = split_bars(
        "steps: 50%|# | 81/162 [07:26<07:26,  5.51s/it, avr_loss=0.08692026-04-03 11:43:01 INFO x]"
    )
    assert isinstance(bar, Bar)
    assert bar.postfix == ", avr_loss=0.0869"
    assert str(message).startswith("2026-04-03")


def test_the_leftover_of_a_bar_behind_a_message_is_no_bar() -> None:
    text = "values will be initialized to default values.       | 4/15 [01:07<03:05, 16.84s/it]"
    assert not any(isinstance(part, Bar) for part in split_bars(text))


@given(
    st.text(alphabet="abc XYZ_-0123456789", max_size=20),
    st.integers(0, 10**6),
    st.integers(1, 10**6),
    st.integers(0, 10**6),
    st.booleans(),
)
def test_what_tqdm_draws_is_read_back(name: str, step: int, total: int, left: int, slow: bool) -> None:
    clock = f"{left // 3600}:{left // 60 % 60:02}:{left % 60:02}" if left >= 3600 else f"{left // 60:02}:{left % 60:02}"
    rate = "2.50s/it" if slow else "2.50it/s"
    percent = min(100, step * 100 // total)
    bar = only_bar(
        f"{name}: {percent:3d}%|{'█' * (percent // 10):<10}| {step}/{total} [00:10<{clock}, {rate}, loss=0.5]"
    )
    assert (bar.step, bar.total, bar.eta_seconds) == (step, total, left)
    assert bar.rate == pytest.approx(0.4 if slow else 2.5)
    assert bar.description == name.strip()
