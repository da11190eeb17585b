"""Columns from a machine that is not trusted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.series.schema import TABLES, required_columns
from stationmaster.series.table import LONGEST_DETAILS, LONGEST_TEXT, joined, table_from_json, table_of

STEPS: dict[str, Any] = {"id": [1, 2], "step": [10, 20], "timestamp": [5.0, 6.0], "loss": [0.5, None]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_columns_read_back_as_values_and_as_numbers() -> None:
    table = table_from_json("StepMetric", STEPS)
    assert table is not None
    assert len(table) == 2
    assert table.values("step") == [10, 20]
    assert table.values("loss") == [0.5, None]
    assert list(table.numbers("step")) == [10, 20]
    assert table.numbers("loss")[0] == 0.5
    assert math.isnan(table.numbers("loss")[1])
    assert table.as_lists() == STEPS


def test_a_column_that_was_not_sent_reads_as_none() -> None:
    table = table_of("StepMetric", STEPS)
    assert table.values("learning_rate") == [None, None]
    assert all(map(math.isnan, table.numbers("learning_rate")))


def test_a_value_of_the_wrong_type_becomes_none() -> None:
    table = table_of(
        "StepMetric", {**STEPS, "loss": ["0.5", True], "batch_size": [2.5, 2**70], "gradient_norm": [math.inf, 3]}
    )
    assert table.values("loss") == [None, None]
    assert table.values("batch_size") == [None, None]
    assert table.values("gradient_norm") == [None, 3.0]


def test_unknown_columns_are_ignored() -> None:
    table = table_from_json("StepMetric", {**STEPS, "evil": ["x" * 1000] * 2})
    assert table is not None
    assert "evil" not in table.columns


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("sqlite_master", STEPS),
        (["StepMetric"], STEPS),
        ("StepMetric", None),
        ("StepMetric", {}),
        ("StepMetric", {**STEPS, "loss": [0.5]}),
        ("StepMetric", {**STEPS, "loss": 0.5}),
        ("StepMetric", {**STEPS, "loss": {"0": 0.5}}),
        ("StepMetric", {"id": [], "step": [], "timestamp": []}),
        ("StepMetric", {"id": [1], "loss": [0.5]}),
        ("StepMetric", {"id": [1], "step": [None], "timestamp": [5.0]}),
    ],
)
def test_what_cannot_be_used_gives_nothing(name: object, columns: object) -> None:
    assert table_from_json(name, columns) is None


def test_no_machine_can_send_what_home_records_itself() -> None:
    assert table_from_json("InstanceSample", {"id": [1], "timestamp": [1.0]}) is None


def test_more_values_than_allowed_give_nothing() -> None:
    assert table_from_json("StepMetric", STEPS, most_values=8) is not None
    assert table_from_json("StepMetric", STEPS, most_values=7) is None


def test_a_row_without_a_required_value_is_dropped() -> None:
    table = table_from_json("StepMetric", {**STEPS, "step": [None, 20]})
    assert table is not None
    assert table.values("id") == [2]


def test_texts_are_cut_and_made_storable() -> None:
    table = table_of(
        "TrainingEvent",
        {"id": [1], "timestamp": [1.0], "event_type": ["a\0b\udce9" + "c" * 300], "details": ["d" * 20_000]},
    )
    (kind,), (details,) = table.values("event_type"), table.values("details")
    assert kind.startswith("a?b?c")
    assert len(kind) == LONGEST_TEXT
    assert len(details) == LONGEST_DETAILS


def test_details_that_are_too_long_lose_their_longest_parts_and_stay_readable() -> None:
    long = json.dumps({"step": 7, "config": {"prompts": ["p" * 200] * 100}, "old_batch_size": 4})
    table = table_of("TrainingEvent", {"id": [1], "timestamp": [1.0], "event_type": ["oom_error"], "details": [long]})
    (details,) = table.values("details")
    assert json.loads(details) == {"step": 7, "old_batch_size": 4}


@given(st.dictionaries(st.text(max_size=5), st.integers(0, 6000).map("é".__mul__), max_size=6))
def test_details_of_any_length_stay_readable(details: dict[str, object]) -> None:
    columns: dict[str, list[object]] = {
        "id": [1],
        "timestamp": [1.0],
        "event_type": ["x"],
        "details": [json.dumps(details)],
    }
    (kept,) = table_of("TrainingEvent", columns).values("details")
    assert len(kept) <= LONGEST_DETAILS
    assert json.loads(kept).keys() <= details.keys()


def test_rows_can_be_picked_by_value() -> None:
    table = table_of(
        "StepValue",
        {"id": [1, 2, 3], "step": [1, 1, 2], "timestamp": [1.0] * 3, "name": ["a", "b", "a"], "value": [1.0, 2.0, 3.0]},
    )
    assert table.where("name", "a").values("value") == [1.0, 3.0]
    assert [row["value"] for row in table.rows()] == [1.0, 2.0, 3.0]
    assert table.head(2).values("name") == ["a", "b"]


def test_tables_are_joined_in_their_order_also_with_different_columns() -> None:
    later = table_of("StepMetric", {"id": [3], "step": [30], "timestamp": [7.0], "batch_size": [4]})
    whole = joined([table_of("StepMetric", STEPS), later])
    assert whole.values("step") == [10, 20, 30]
    assert whole.values("loss") == [0.5, None, None]
    assert whole.values("batch_size") == [None, None, 4]


def test_steps_of_a_resumed_trainer_are_moved() -> None:
    moved = table_of("StepMetric", STEPS).with_steps_moved(500)
    assert moved.values("step") == [510, 520]
    assert moved.values("loss") == [0.5, None]


def test_events_of_a_resumed_trainer_are_moved_with_its_steps() -> None:
    details = ['{"step": 4, "batch_size": 2}', '{"path": "a.png"}', "no JSON", None, '{"step": true}']
    events = {"id": [*range(5)], "timestamp": [1.0] * 5, "event_type": ["save_start"] * 5, "details": details}
    moved = table_of("TrainingEvent", events).with_steps_moved(500)
    assert moved.values("details") == ['{"step":504,"batch_size":2}', *details[1:]]


@given(st.sampled_from(sorted(TABLES)), st.data())
def test_whatever_a_machine_sends_only_good_rows_remain(name: str, data: st.DataObject) -> None:
    rows = data.draw(st.integers(0, 4))
    names = st.sampled_from([*TABLES[name], "other"])
    columns = data.draw(
        st.dictionaries(names, st.lists(json_values, min_size=rows, max_size=rows) | json_values, max_size=20)
    )
    table = table_from_json(name, columns)
    if table is None:
        return
    assert 0 < len(table) <= rows
    json.dumps(table.as_lists(), allow_nan=False).encode()
    for required in required_columns(name):
        assert None not in table.values(required)
