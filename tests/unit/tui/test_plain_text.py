"""The fleet without an app: a table, and sentences that can be read out."""

from __future__ import annotations

from stationmaster.tui.fleet import Tone
from stationmaster.tui.plain import PrintedTable, SpokenRows, row_sentence, table_lines
from tests.support.terminal.scripted_source import row, view


def test_the_table_has_a_line_per_row_within_eighty_columns() -> None:
    lines = list(table_lines(view(row("a"), row("b")), width=80))
    assert len(lines) == 4
    assert lines[0].split() == ["ID", "GPU", "Status", "Prog", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA"]
    assert lines[3].startswith("running 2/2, errors 0; $30.46 so far, $0.934 per hour")


def test_a_sentence_has_no_icons_and_says_what_colour_would() -> None:
    sentence = row_sentence(row("a", tone=Tone.WARNING, note="its GPU is idle (2%)", epoch=1.0, total_epochs=3))
    assert sentence.isascii()
    assert "running, warning because its GPU is idle (2%)," in sentence
    assert "epoch 1 of 3" in sentence


def test_only_rows_that_changed_are_said_again() -> None:
    spoken = SpokenRows()
    assert len(spoken.changed([row("a"), row("b")])) == 2
    cheap = [row("a", total_cost=20_000_000, loss=0.5), row("b", progress=51.0)]
    assert [sentence.split(":")[0] for sentence in spoken.changed(cheap)] == ["b"]
    assert spoken.changed(cheap) == []


def test_of_a_table_that_was_printed_only_changed_lines_follow() -> None:
    printed = PrintedTable()
    first = list(table_lines(view(row("a"), row("b")), width=80))
    assert printed.changed(first) == first
    assert printed.changed(first) == []
    second = list(table_lines(view(row("a"), row("b", progress=99.0)), width=80))
    fresh = printed.changed(second)
    assert fresh == [line for line in second if line not in first]
    assert 0 < len(fresh) < len(second)
