from __future__ import annotations

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from stationmaster.tui.printable_lines import PrintableLines
from tests.support.jobs.hostile_texts import CONTROLS, ESCAPES

BLACK, RED = Color(0, 0, 0), Style.parse("red")


def test_a_line_that_no_one_made_plain_is_made_so_before_it_is_drawn() -> None:
    (drawn,) = PrintableLines().apply([Segment(ESCAPES, RED)], BLACK)
    assert not CONTROLS.search(drawn.text)
    assert drawn.text.rstrip().endswith("[bold red]h[/]")
    assert drawn.style == RED
    assert cell_len(drawn.text) >= Segment(ESCAPES).cell_length, "what is beside it stays where it is"


def test_other_lines_stay_as_they_are() -> None:
    line = [Segment("loss 0.5 ", RED), Segment("✓ 👩\u200d🚀", None)]
    drawn = PrintableLines().apply(line, BLACK)
    assert all(before is after for before, after in zip(line, drawn, strict=True))
