"""Rows, chosen and sorted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from stationmaster.tui.fleet import Arrangement, FleetRow, arranged, next_of
from tests.support.terminal.scripted_source import row


def test_words_of_the_filter_may_stand_anywhere_in_the_row() -> None:
    rows = [row("a", gpu="H100", note="its GPU is idle"), row("b", gpu="H100"), row("c")]
    assert [each.id for each in arranged(rows, Arrangement(text="IDLE h100"), None)] == ["a"]
    assert [each.id for each in arranged(rows, Arrangement(text="  "), None)] == ["a", "b", "c"]


@given(st.lists(st.one_of(st.none(), st.floats(allow_nan=False))), st.booleans())
def test_sorting_loses_no_row_and_puts_the_unknown_last(losses: list[float | None], is_reversed: bool) -> None:
    rows = [row(str(number), loss=loss) for number, loss in enumerate(losses)]

    def loss_of(each: FleetRow) -> float | None:
        return each.loss

    found = arranged(rows, Arrangement(sort_by="Loss", is_reversed=is_reversed), loss_of)
    assert {each.id for each in found} == {each.id for each in rows}
    known = [each.loss for each in found if each.loss is not None]
    assert known == sorted(known, reverse=is_reversed)
    assert [each.loss for each in found[len(known) :]] == [None] * (len(rows) - len(known))


def test_the_next_name_after_an_unknown_one_is_the_first() -> None:
    assert next_of(["All", "blue"], "gone") == "All"
