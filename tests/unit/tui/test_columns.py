"""The table's columns."""

from __future__ import annotations

import itertools

import pytest
from rich.cells import cell_len

from stationmaster.tui.columns import cell, layout, progress_text
from tests.support.terminal.scripted_source import row

FIGURES = ["ID", "GPU", "Status", "Progress", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA"]


@pytest.mark.parametrize("width", [80, 119, 120, 159, 160, 300])
def test_the_ten_figures_are_on_every_screen_in_their_order(width: int) -> None:
    placed = layout(width)
    titles = [each.column.title for each in placed]
    assert [title for title in titles if title in FIGURES] == FIGURES
    assert all(each.x + each.width <= width for each in placed)
    assert all(left.x + left.width <= right.x for left, right in itertools.pairwise(placed))


@pytest.mark.parametrize("width", [80, 120, 200])
def test_every_cell_fills_its_place_whatever_it_shows(width: int) -> None:
    odd = row(
        "x" * 40, name="猫" * 30, gpu="8x NVIDIA H100 80GB HBM3", status="a very long state", loss=123456.789,
        total_cost=10**13, eta_seconds=10**9, progress=None, epoch=12.0, total_epochs=1000, note="n" * 500,
    )  # fmt: skip
    for each in (odd, row("1"), row("2", loss=None, cost_per_hour=None, gpu_percent=None, is_over=True)):
        for placed in layout(width):
            assert cell_len(cell(each, placed)) == placed.width, placed.column.title


def test_unknown_is_said_and_loss_has_three_decimals() -> None:
    texts = {each.column.title: cell(row("1", loss=2.34567, eta_seconds=None), each).strip() for each in layout(80)}
    assert texts["Loss"] == "2.346"
    assert texts["Cost/hr"] == "$0.467"
    assert texts["Total"] == "$15.23"
    assert texts["ETA"] == "N/A"


def test_epochs_are_left_out_where_they_do_not_fit() -> None:
    assert progress_text(row("1", epoch=1.0, total_epochs=3, progress=45.0), 7) == "1/3 45%"
    assert progress_text(row("1", epoch=10.0, total_epochs=20, progress=45.0), 7) == "45%"
    assert progress_text(row("1", progress=None), 7) == "N/A"
    assert progress_text(row("1", epoch=1.0, total_epochs=3, progress=None), 7) == "1/3"
