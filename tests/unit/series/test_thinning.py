"""Tables thinned for long storage."""

from __future__ import annotations

import math
import random

from stationmaster.series.buckets import reduce_to_columns
from stationmaster.series.codec import encode
from stationmaster.series.table import Table, table_of
from stationmaster.series.thinning import thinned


def noisy_steps(count: int) -> Table:
    chance = random.Random(1)
    ids = list(range(1, count + 1))
    loss = [chance.random() for _ in ids]
    loss[count // 3] = 50.0
    return table_of(
        "StepMetric",
        {
            "id": ids,
            "step": ids,
            "timestamp": [1000.0 + step for step in ids],
            "loss": loss,
            "batch_size": [4] * count,
            "gradient_norm": [None if 1000 < step < 2000 else chance.random() for step in ids],
        },
    )


def test_a_chart_of_a_thinned_table_has_the_same_extremes() -> None:
    table = noisy_steps(20_000)
    small = thinned(table, columns=200)
    for column in ("loss", "gradient_norm", "batch_size"):
        before = reduce_to_columns(table.numbers("step"), table.numbers(column), columns=200)
        present = [(x, y) for x, y in zip(before.x, before.y, strict=True) if y is not None]
        left = zip(small.values("step"), small.values(column), strict=True)
        assert set(present) <= {(step, value) for step, value in left if value is not None}
    assert 50.0 in small.values("loss")


def test_a_thinned_table_takes_a_fraction_of_the_room() -> None:
    table = noisy_steps(50_000)
    assert len(encode(thinned(table, columns=200))) < len(encode(table)) / 20


def test_thinning_again_changes_nothing_that_a_chart_shows() -> None:
    once = thinned(noisy_steps(20_000), columns=200)
    twice = thinned(once, columns=200)
    drawn = reduce_to_columns(once.numbers("step"), once.numbers("loss"), columns=200)
    again = reduce_to_columns(twice.numbers("step"), twice.numbers("loss"), columns=200)
    assert (drawn.x, drawn.y) == (again.x, again.y)


def test_few_rows_events_and_facts_stay_as_they_are() -> None:
    few = noisy_steps(300)
    assert thinned(few, columns=200) == few
    ids = list(range(1, 5001))
    events = table_of(
        "TrainingEvent", {"id": ids, "timestamp": [float(one) for one in ids], "event_type": ["save_start"] * 5000}
    )
    assert thinned(events, columns=10) == events


def test_each_gpu_keeps_its_own_extremes() -> None:
    count = 4000
    table = table_of(
        "GpuSample",
        {
            "id": list(range(1, 2 * count + 1)),
            "timestamp": [float(place // 2) for place in range(2 * count)],
            "gpu_index": [0, 1] * count,
            "utilization_percent": [value for place in range(count) for value in (100.0, float(place % 10))],
        },
    )
    small = thinned(table, columns=20)
    assert len(small) < 200
    assert set(small.where("gpu_index", 0).values("utilization_percent")) == {100.0}
    assert {0.0, 9.0} <= set(small.where("gpu_index", 1).values("utilization_percent"))


def test_a_gap_stays_a_gap() -> None:
    ids = list(range(1, 10_001))
    loss = [math.nan if 4000 < step <= 6000 else 1.0 for step in ids]
    table = table_of("StepMetric", {"id": ids, "step": ids, "timestamp": [float(one) for one in ids], "loss": loss})
    small = thinned(table, columns=100)
    drawn = reduce_to_columns(small.numbers("step"), small.numbers("loss"), columns=10)
    assert None in drawn.y


def test_a_table_without_measured_columns_stays_as_it_is() -> None:
    ids = list(range(9000))
    bare = table_of("StepMetric", {"id": ids, "step": ids, "timestamp": [float(step) for step in ids]})
    assert thinned(bare) == bare
