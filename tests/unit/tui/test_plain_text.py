"""The fleet without an app: a table, and sentences that can be read out."""

from __future__ import annotations

from stationmaster.tui.fleet import Tone
from stationmaster.tui.plain import changed_sentences, row_sentence, table_lines
from tests.support.terminal.scripted_source import row, view


def test_the_table_has_a_line_per_row_within_eighty_columns() -> None:
    lines = list(table_lines(view(row("a"), row("b"))))
    assert len(lines) == 4
    assert lines[0].split() == ["ID", "GPU", "Status", "Prog", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA"]
    assert lines[3].startswith("running 2/2, errors 0; $30.46 so far, $0.934 per hour")


def test_a_sentence_has_no_icons_and_says_what_colour_would() -> None:
    sentence = row_sentence(row("a", tone=Tone.WARNING, note="its GPU is idle (2%)", epoch=1.0, total_epochs=3))
    assert sentence.isascii()
    assert "running, warning" in sentence
    assert sentence.endswith("its GPU is idle (2%)")
    assert "epoch 1 of 3" in sentence


def test_only_rows_that_changed_are_said_again() -> None:
    first = dict(changed_sentences({}, [row("a"), row("b")]))
    assert list(first) == ["a", "b"]
    assert [id for id, _ in changed_sentences(first, [row("a"), row("b", loss=0.5)])] == ["b"]
