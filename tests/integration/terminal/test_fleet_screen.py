"""The fleet screen: what it shows, and what each key does."""

from __future__ import annotations

import gc
from weakref import WeakSet

from textual import events
from textual.pilot import Pilot
from textual.widgets._footer import FooterKey

from stationmaster.errors import AccessRefused, ProviderError
from stationmaster.tui.app import FleetApp
from stationmaster.tui.fleet import Tone
from stationmaster.tui.palette import DARK
from stationmaster.tui.screens.fleet import FleetScreen
from tests.support.terminal.driving import drive, lines_of, screen_text, table, until, until_text
from tests.support.terminal.scripted_source import (
    ALL_GROUPS,
    AT,
    ScriptedSource,
    log_entry,
    notice,
    row,
    view,
)


def app_of(source: ScriptedSource, **options: object) -> FleetApp:
    return FleetApp(source, **options)  # type: ignore[arg-type]


def ids(pilot: Pilot[None]) -> list[str]:
    return [each.id for each in table(pilot.app).rows]


def test_it_shows_every_figure_of_a_row_and_the_summary() -> None:
    source = ScriptedSource()
    source.show(view(row("30007012", epoch=1.0, total_epochs=3), logs=(log_entry("30007012", "Step [b]1[/b] of 3"),)))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "30007012")
        text = screen_text(pilot.app)
        for part in ("RTX 4090", "✅ running", "1/3", "50%", "85.2%", "42.1%", "0.123", "$0.467", "$15.23", "45m"):
            assert part in text, part
        for part in ("Running 1/1", "errors 0", "GPU 63.2%", "memory 31.9%", "24h $26.44", "average $0.467/h"):
            assert part in text, part
        assert "#30007012 Step [b]1[/b] of 3" in text

    drive(app_of(source), scene)


def test_all_ten_figures_fit_into_eighty_columns() -> None:
    source = ScriptedSource()
    source.show(view(row("30007012", total_cost=123_450_000, eta_seconds=45_000.0)))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "30007012")
        shown = next(each for each in screen_text(pilot.app).splitlines() if "30007012" in each)
        for part in ("RTX 4090", "running", "50%", "85.2%", "42.1%", "0.123", "$0.467", "$123.45", "12h30m"):
            assert part in shown, part

    drive(app_of(source), scene, size=(80, 24))


def test_a_row_keeps_its_cursor_when_rows_move_and_enter_opens_it() -> None:
    source = ScriptedSource()
    source.show(view(row("a"), row("b"), row("c")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["a", "b", "c"], what="three rows")
        await pilot.press("down")
        assert table(pilot.app).cursor == "b"
        source.show(view(row("c"), row("b"), row("a")))
        await until(pilot, lambda: ids(pilot) == ["c", "b", "a"], what="another order")
        assert table(pilot.app).cursor == "b"
        await pilot.press("end")
        assert table(pilot.app).cursor == "a"
        await pilot.press("k", "enter")
        await until_text(pilot, "cats-b  b")

    drive(app_of(source), scene)


def test_a_filter_narrows_rows_and_logs_until_escape() -> None:
    source = ScriptedSource()
    source.show(view(row("a", gpu="H100"), row("b"), logs=(log_entry("a", "of a"), log_entry("b", "of b"))))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(ids(pilot)) == 2, what="two rows")
        await pilot.press("slash", *"h100")
        await until(pilot, lambda: ids(pilot) == ["a"], what="one row")
        assert lines_of(pilot.app, "logs") == ["#a of a"]
        await pilot.press("enter")
        assert "filter: h100" in screen_text(pilot.app)
        await pilot.press("escape")
        await until(pilot, lambda: len(ids(pilot)) == 2, what="two rows again")
        await pilot.press("slash", *"nothing")
        await until_text(pilot, "no row fits")

    drive(app_of(source), scene)


def test_keys_in_the_filter_are_text_and_not_commands() -> None:
    source = ScriptedSource()
    source.show(view(row("a")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["a"], what="a row")
        await pilot.press("slash", "q", "p", "x")
        assert pilot.app.is_running
        assert source.asked == []

    drive(app_of(source), scene)


def test_keys_that_come_faster_than_the_screen_are_the_filters_text() -> None:
    source = ScriptedSource()
    source.show(view(row("a"), row("stuck")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(ids(pilot)) == 2, what="rows")
        for key, character in (("slash", "/"), *((letter, letter) for letter in "stuck"), ("enter", "\r")):
            pilot.app.post_message(events.Key(key, character))
        await until(pilot, lambda: ids(pilot) == ["stuck"], what="one row")
        await until_text(pilot, "filter: stuck")
        assert source.asked == []

    drive(app_of(source), scene)


def test_sorting_goes_from_column_to_column_and_back() -> None:
    source = ScriptedSource()
    source.show(view(row("b", loss=1.0), row("a", loss=None), row("c", loss=0.5)))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["b", "a", "c"], what="the order of the source")
        await pilot.press("s")
        assert ids(pilot) == ["a", "b", "c"]
        assert "ID▲" in screen_text(pilot.app)
        await pilot.press("S")
        assert ids(pilot) == ["c", "b", "a"]
        while "sorted by Loss" not in screen_text(pilot.app):
            await pilot.press("s")
        assert ids(pilot) == ["c", "b", "a"], "unknown comes last"
        await pilot.press("S")
        assert ids(pilot) == ["b", "c", "a"], "unknown comes last either way"
        await pilot.press("escape")
        assert ids(pilot) == ["b", "a", "c"]

    drive(app_of(source), scene)


def test_a_click_sorts_by_a_title_selects_a_row_and_opens_it() -> None:
    source = ScriptedSource()
    source.show(view(row("b"), row("a")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["b", "a"], what="rows")
        await pilot.click("FleetTable", offset=(2, 0))
        await until(pilot, lambda: ids(pilot) == ["a", "b"], what="sorted rows")
        await pilot.click("FleetTable", offset=(10, 1))
        await until(pilot, lambda: table(pilot.app).cursor == "a", what="the clicked row")
        await pilot.click("FleetTable", offset=(10, 1))
        await until_text(pilot, "cats-a  a")

    drive(app_of(source), scene)


def test_groups_are_switched_one_after_another() -> None:
    source = ScriptedSource()
    source.show(view(row("a", groups=("blue",)), row("b", groups=("green",)), groups=ALL_GROUPS))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(ids(pilot)) == 2, what="rows")
        seen = []
        for _ in range(3):
            await pilot.press("g")
            seen.append(ids(pilot))
        assert seen == [["a"], ["b"], ["a", "b"]]

    drive(app_of(source), scene)


def test_it_can_begin_with_a_group() -> None:
    source = ScriptedSource()
    source.show(view(row("a", groups=("blue",)), row("b", groups=("green",)), groups=ALL_GROUPS))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["b"], what="the group")

    drive(app_of(source, group="green"), scene)


def test_refresh_pause_and_clear_reach_the_source() -> None:
    source = ScriptedSource()
    source.show(view(row("a"), logs=(log_entry("a", "one"),)))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "#a one")
        await pilot.press("r", "p")
        await until_text(pilot, "PAUSED")
        await pilot.press("p", "c")
        await until(pilot, lambda: lines_of(pilot.app, "logs") == [], what="an empty log")
        assert "PAUSED" not in screen_text(pilot.app)
        assert source.asked == ["refresh", "pause", "resume", "clear"]

    drive(app_of(source), scene)


def test_the_help_lists_the_keys_and_closes_again() -> None:
    source = ScriptedSource()
    source.show(view(row("a")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: ids(pilot) == ["a"], what="a row")
        await pilot.press("question_mark")
        await until_text(pilot, "pause or resume updates")
        await pilot.press("escape")
        await until(pilot, lambda: "pause or resume" not in screen_text(pilot.app), what="the screen below")

    drive(app_of(source), scene)


def test_q_and_ctrl_c_end_the_app() -> None:
    for key in ("q", "ctrl+c"):
        source = ScriptedSource()

        async def scene(pilot: Pilot[None], key: str = key) -> None:
            await pilot.press(key)
            await until(pilot, lambda: not pilot.app.is_running, what="the end")

        app = app_of(source)
        drive(app, scene)
        assert app.return_code == 0
        assert source.released.is_set(), "the source is closed"


def test_old_values_stay_with_their_age_and_the_reason() -> None:
    source = ScriptedSource()
    source.show(view(row("a", status="35s old", is_old=True), row("b")))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "35s old")
        source.show(ProviderError("the provider did not answer within 10 s"))
        await until_text(pilot, "the provider did not answer within 10 s")
        assert ids(pilot) == ["a", "b"], "the last known rows stay"
        assert "data from" in screen_text(pilot.app)

    drive(app_of(source), scene)


def test_a_key_that_never_worked_ends_the_app_with_the_reason() -> None:
    source = ScriptedSource()
    source.show(AccessRefused("Vast.ai refuses the key"))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: not pilot.app.is_running, what="the end")

    app = app_of(source)
    drive(app, scene)
    assert isinstance(app.failure, AccessRefused)
    assert app.return_code == AccessRefused.exit_code


def test_a_source_that_does_not_answer_delays_no_key() -> None:
    source = ScriptedSource()
    source.show(view(row("a"), row("b")))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(ids(pilot)) == 2, what="rows")
        source.is_blocked.set()
        await pilot.press("down")
        assert table(pilot.app).cursor == "b"
        await pilot.press("x", "enter", "question_mark")
        await until_text(pilot, "pause or resume updates")
        await pilot.press("escape", "q")
        await until(pilot, lambda: not pilot.app.is_running, what="the end")

    drive(app_of(source), scene)


def test_notices_become_one_toast() -> None:
    source = ScriptedSource()
    source.show(view(row("a")))
    source.show(view(row("a"), notices=(notice("a finished epoch 1", Tone.GOOD), notice("a turned yellow"))))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "a turned yellow")
        assert "a finished epoch 1" in screen_text(pilot.app)

    drive(app_of(source), scene)


def test_made_up_data_is_marked_on_every_screen() -> None:
    from stationmaster.tui.sources.base import About

    source = ScriptedSource(about=About(title="Machines", interval=1.0, is_made_up=True))
    source.show(view(row("a")))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "MOCK DATA: nothing here is real")
        await until(pilot, lambda: ids(pilot) == ["a"], what="a row")
        await pilot.press("enter")
        await until_text(pilot, "cats-a  a")
        assert "MOCK DATA" in screen_text(pilot.app)

    drive(app_of(source), scene)


def test_it_can_be_resized_at_any_time() -> None:
    source = ScriptedSource()
    source.show(view(*(row(f"{number:08}") for number in range(200)), at=AT))

    async def scene(pilot: Pilot[None]) -> None:
        await until(pilot, lambda: len(ids(pilot)) == 200, what="rows")
        await pilot.press("end")
        for size in ((300, 100), (80, 24), (40, 10), (200, 60)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            assert "00000199" in screen_text(pilot.app) or size[1] <= 10, size
        await pilot.press("enter")
        await until_text(pilot, "cats-00000199")
        for size in ((80, 24), (300, 100), (30, 8)):
            await pilot.resize_terminal(*size)
            await pilot.pause()

    drive(app_of(source), scene)


def test_a_look_before_the_screen_is_composed_or_after_it_is_gone_is_no_error() -> None:
    """A busy computer composes late, and threads still look while the app ends."""
    source = ScriptedSource()
    early = view(row("30007012"))

    async def scene(pilot: Pilot[None]) -> None:
        screen = FleetScreen(source.about, DARK, now=lambda: AT)
        screen.look(early)
        await pilot.app.push_screen(screen)
        await until_text(pilot, "30007012")
        pilot.app.pop_screen()
        await pilot.pause()
        screen.look(early)

    drive(app_of(source), scene)


def test_keys_of_closed_screens_are_not_kept() -> None:
    source = ScriptedSource()
    source.show(view(row("30007012")))

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "30007012")
        seen: WeakSet[FooterKey] = WeakSet()
        for _ in range(3):
            for key in ("question_mark", "escape", "enter", "escape"):
                await pilot.press(key)
                seen.update(pilot.app.screen.query(FooterKey))
        gc.collect()
        assert len(seen) <= 3 * len(pilot.app.screen.query(FooterKey)), len(seen)

    drive(app_of(source), scene)
