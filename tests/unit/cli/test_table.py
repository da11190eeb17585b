"""Tables fit their terminal: first longer texts are cut, then columns are left out; a pipe gets everything."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.cli.table import Cell, Column, cell_width, table_lines

COLUMNS = (Column("ID"), Column("NAME", shrinks_to=8), Column("LOSS", right=True, leaves=1), Column("SPEED", leaves=2))
ROWS = [("7f3k2q9a", "a rather long name", "0.031", "9.99 steps/s"), ("a", "b", "12", "")]


def lines(width: int | None) -> list[str]:
    return list(table_lines(COLUMNS, ROWS, width=width))


def test_a_pipe_gets_every_column_and_whole_texts() -> None:
    assert lines(None) == [
        "ID        NAME                 LOSS  SPEED",
        "7f3k2q9a  a rather long name  0.031  9.99 steps/s",
        "a         b                      12",
    ]


def test_a_narrow_terminal_gets_shorter_texts_first() -> None:
    assert lines(42)[1] == "7f3k2q9a  a rather l…  0.031  9.99 steps/s"


def test_a_narrower_one_loses_the_least_important_columns() -> None:
    assert lines(30)[:2] == ["ID        NAME            LOSS", "7f3k2q9a  a rather lon…  0.031"]
    assert lines(20)[1] == "7f3k2q9a  a rather …"


def test_what_must_stay_stays_on_the_narrowest() -> None:
    assert lines(5)[1] == "7f3k2q9a  a rathe…"


def test_a_name_cannot_draw_on_the_terminal() -> None:
    (_, row) = table_lines([Column("NAME")], [("\x1b[2Jcats\n7f3k2q9a  fake",)], width=None)
    assert "\x1b" not in row
    assert "\n" not in row


def test_a_table_without_rows_has_its_titles() -> None:
    assert list(table_lines(COLUMNS, [], width=80)) == ["ID  NAME  LOSS  SPEED"]


@given(
    st.lists(st.tuples(st.text(max_size=12), st.text(), st.text(max_size=6), st.text()), max_size=4),
    st.integers(40, 200),
)
def test_lines_are_never_wider_than_the_terminal(rows: list[tuple[str, ...]], width: int) -> None:
    columns = (Column("A", shrinks_to=4), *COLUMNS[1:])
    short = [(Cell(row[0], "red"), row[1], row[2][:1], row[3]) for row in rows]
    assert all(cell_width(line) <= width for line in table_lines(columns, short, width=width))
