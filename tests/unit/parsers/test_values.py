"""Which number on a line is which."""

from __future__ import annotations

import doctest
import math
from importlib import import_module

import pytest

from stationmaster.parsers.counters import find_counter
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.quantities import duration_seconds, steps_per_second
from stationmaster.parsers.values import eta_seconds, learning_rate, speed, training_loss


@pytest.mark.parametrize(
    ("text", "loss"),
    [
        ("loss: 0.5 (0.7)", 0.5),
        ("loss_cls: 0.2  loss_box: 0.3  loss: 0.5", 0.5),
        ("total_loss: 1.589  loss_cls: 1.439", 1.589),
        ("loss=0.287, smooth loss=0.139", 0.287),
        ("train_loss_step=0.733, val_loss=0.776, train_loss_epoch=1.690", 0.733),
        ("train loss 2.38, val loss 2.39", 2.38),
        ("gpt_loss=1.21, loss_mean=1.25", 1.21),
        ("{'loss': '2.007', 'grad_norm': '2.271'}", 2.007),
        ("val_loss: 0.9", None),
        ("loss-val: 0.27", None),
        ("eval/loss=0.4, test_loss=0.2", None),
        ("d_loss: 0.1 g_loss: 0.2", None),
        ("loss_scale=128", None),
        ("lm loss: 7.399415E+00 | loss scale: 16384.0", 7.399415),
    ],
)
def test_the_training_loss_is_told_from_parts_means_and_validation(text: str, loss: float | None) -> None:
    assert training_loss(find_pairs(text)) == loss


def test_a_loss_that_is_not_a_number_is_seen() -> None:
    assert math.isnan(training_loss(find_pairs("loss: nan - val_loss: 0.3")) or 0)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("lr: 0.0", 0.0),
        ("base_lr: 2e-2 lr: 2e-3", 2e-3),
        ("lr=[9e-6, 5e-4]", 9e-6),
        ("optim0_lr0=2e-5", 2e-5),
        ("actor/lr:1e-6", 1e-6),
        ("colr: 5", None),
    ],
)
def test_the_learning_rate_is_found_under_its_many_names(text: str, rate: float | None) -> None:
    assert learning_rate(find_pairs(text)) == rate


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("iter_time: 0.5", 2.0),
        ("elapsed time per iteration (ms): 250.0", 4.0),
        ("batch_cost: 0.5 ips: 19.7 images/s", 2.0),
        ("step_avg:125.00ms", 8.0),
        ("speed: 2.50 step/s", 2.5),
        ("ups=2.5, wps=31022", 2.5),
        ("samples/sec: 25.6", None),
        ("'train_steps_per_second': 1.638", None),
        ("data_time: 0.1", None),
        ("tok/sec: 1000", None),
    ],
)
def test_the_pace_counts_steps_and_nothing_else(text: str, rate: float | None) -> None:
    assert speed(find_pairs(text)) == rate


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("eta: 1 day, 21:58:25, time: 0.5", 165505),
        ("'remaining_time': '20m 1s'", 1201),
        ("ETA: 12s", 12),
        ("ETA: 0", 0),
        ("beta: 3", None),
    ],
)
def test_the_time_left_is_read_in_every_spelling(text: str, seconds: float | None) -> None:
    assert eta_seconds(find_pairs(text)) == seconds


@pytest.mark.parametrize(
    ("text", "step", "total", "epoch"),
    [
        ("Epoch [2/5], Step [300/600], Loss: 0.4", 300, 600, 2),
        ("iteration      300/  500000 | lm loss: 8", 300, 500000, None),
        ('{"current_steps": 8, "total_steps": 20, "epoch": 0.5}', 8, 20, 0.5),
        ("'global_step/max_steps': '1/27'", 1, 27, None),
        ("global step 40, epoch: 1, batch: 10, loss: 0.6", 40, None, 1),
        ("warmup steps = 100, batch size: 4", None, None, None),
        ("Gradient Accumulation steps = 4", None, None, None),
        ("eval_steps: 50", None, None, None),
        ("epoch is incremented. current_epoch: 0, epoch: 1", None, None, 1),
    ],
)
def test_the_counter_is_told_from_numbers_of_the_plan(
    text: str, step: int | None, total: int | None, epoch: float | None
) -> None:
    counter = find_counter(find_pairs(text))
    assert (counter.step, counter.total, counter.epoch) == (step, total, epoch)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("47:09:50", 169790),
        ("27774189:14:01", 99987081241),
        ("2 days, 7:32:05", 199925),
        ("25 m, 3 s", 1503),
        ("7 minutes and 58.5 seconds", 478.5),
        ("1:02", 62),
        ("soon", None),
        ("", None),
    ],
)
def test_durations(text: str, seconds: float | None) -> None:
    assert duration_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("2.5it/s", 2.5),
        ("4.0s/it", 0.25),
        ("250ms/step", 4.0),
        ("6.03 batch/s", 6.03),
        ("24us/sample", None),
        ("0.0s/it", None),
        ("12 examples/s", None),
    ],
)
def test_rates(text: str, rate: float | None) -> None:
    assert steps_per_second(text) == rate


@pytest.mark.parametrize("module", ["bars", "error_kinds", "lines", "pairs", "quantities"])
def test_the_examples_in_the_code_are_true(module: str) -> None:
    results = doctest.testmod(import_module(f"stationmaster.parsers.{module}"))
    assert (results.failed, results.attempted > 0) == (0, True)
