"""Tables as text: names of columns, delimiters, times, cells that are no numbers."""

from __future__ import annotations

import pytest

from stationmaster.errors import UserError
from stationmaster.series.sources.csv_file import has_step_column, read_csv
from stationmaster.series.sources.tables import tables_of


def test_columns_are_known_by_name_and_others_keep_theirs() -> None:
    text = "global_step,train_loss,lr,grad_norm,reward\n10,0.5,1e-4,2,7\n20,0.4,1e-4,3,8\n"
    steps, values = tables_of(read_csv(text))
    assert next(steps.rows()) == {
        "id": 1, "step": 10, "timestamp": 0.0, "loss": 0.5, "gradient_norm": 2.0, "learning_rate": 1e-4,
    }  # fmt: skip
    assert [(row["step"], row["name"], row["value"]) for row in values.rows()] == [(10, "reward", 7), (20, "reward", 8)]


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    text = "step,loss\n1,0.5\n".replace(",", delimiter)
    assert tables_of(read_csv(text))[0].values("loss") == [0.5]


def test_a_decimal_comma_is_read_where_the_comma_is_no_delimiter() -> None:
    assert tables_of(read_csv("step;loss\n1;0,25\n"))[0].values("loss") == [0.25]


def test_a_cell_that_is_no_number_is_unknown_and_an_empty_one_too() -> None:
    table = tables_of(read_csv("step,loss,lr\n1,oops,1e-4\n2,nan,1e-4\n3,,1e-4\n4,0.5,1e-4\n"))[0]
    assert table.values("loss") == [None, None, None, 0.5]


def test_a_row_without_a_step_is_left_out_and_counted() -> None:
    found = read_csv("step,loss\n1,0.5\n,0.4\nx,0.3\n-1,0.2\n")
    assert [scalar.step for scalar in found.scalars] == [1]
    assert found.notes == ("3 row(s) without a step were left out",)


def test_a_column_of_texts_is_no_series() -> None:
    assert {scalar.name for scalar in read_csv("step,loss,phase\n1,0.5,warm\n2,0.4,hot\n").scalars} == {"loss"}


@pytest.mark.parametrize(
    ("cell", "at"),
    [
        ("1700000000.5", 1_700_000_000.5),
        ("2023-11-14T22:13:20Z", 1_700_000_000.0),
        ("2023-11-14 22:13:20", 1_700_000_000.0),
        ("12.5", 0.0),  # seconds since the start
        ("soon", 0.0),
    ],
)
def test_times_are_read_as_seconds_or_dates(cell: str, at: float) -> None:
    assert tables_of(read_csv(f"step,timestamp,loss\n1,{cell},0.5\n"))[0].values("timestamp") == [at]


def test_one_row_per_value_is_read_too() -> None:
    steps, values = tables_of(read_csv("step,timestamp,name,value\n1,1700000000,loss,0.5\n1,1700000000,reward,3\n"))
    assert steps.values("loss") == [0.5]
    assert values.values("name") == ["reward"]


def test_the_epoch_counts_where_there_is_no_step() -> None:
    assert tables_of(read_csv("epoch,accuracy,loss\n0,0.1,2.0\n1,0.2,1.5\n"))[0].values("step") == [0, 1]


def test_without_a_step_the_error_names_the_line_and_what_is_there() -> None:
    with pytest.raises(UserError, match="line 1: no column with the step; the header has a, b") as caught:
        read_csv("a,b\n1,2\n")
    assert caught.value.hint


def test_a_table_is_known_by_its_first_line() -> None:
    assert has_step_column("\ufeffstep,loss".removeprefix("\ufeff"))
    assert not has_step_column("hello world")
    assert not has_step_column("")
