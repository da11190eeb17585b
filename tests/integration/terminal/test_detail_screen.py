"""The detail screen: lists, search and actions."""

from __future__ import annotations

import logging

import pytest
from textual.pilot import Pilot

from stationmaster.errors import IllegalMove
from stationmaster.tui.app import FleetApp
from stationmaster.tui.screens.detail import DetailScreen
from stationmaster.tui.screens.fleet import FleetScreen
from tests.support.terminal.driving import drive, lines_of, screen_text, until, until_text
from tests.support.terminal.scripted_source import ScriptedSource, row, view


def opened(source: ScriptedSource) -> FleetApp:
    source.show(view(row("a"), row("b")))
    return FleetApp(source, open_id="a", open_link=lambda link: "no display")


def tab(pilot: Pilot[None]) -> str:
    assert isinstance(pilot.app.screen, DetailScreen)
    return pilot.app.screen.tab


def test_it_shows_facts_curves_and_the_end_of_the_log() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await until_text(pilot, "Step 199")
        text = screen_text(pilot.app)
        assert "no stall" in text
        assert "loss 1  lowest 1" in text
        assert "Step 1\n" not in text

    drive(opened(source), scene)


def test_the_lists_are_reached_by_number_tab_and_click() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "Step 199")
        for key, name, text in (
            ("2", "Events", "Rented RTX 4090"),
            ("3", "Checkpoints", "cats.safetensors"),
            ("4", "Cost", "so far $1.00"),
            ("5", "Advice", "1. use a smaller batch"),
            ("tab", "Log", "Step 199"),
            ("shift+tab", "Advice", "1. use a smaller batch"),
        ):
            await pilot.press(key)
            await until_text(pilot, text)
            assert tab(pilot) == name
        await pilot.click("#tabs", offset=(2, 0))
        await until(pilot, lambda: tab(pilot) == "Log", what="the clicked list")

    drive(opened(source), scene)


def test_the_log_is_scrolled_and_followed_again() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "Step 199")
        await pilot.press("home")
        await until_text(pilot, "Step 0")
        assert "Step 199" not in screen_text(pilot.app)
        await pilot.press("pagedown", "down")
        assert "Step 21" in screen_text(pilot.app)
        await pilot.press("end")
        await until_text(pilot, "Step 199")

    drive(opened(source), scene)


def test_a_search_shows_what_it_found_until_escape() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "Step 199")
        await pilot.press("slash", *"nan", "enter")
        await until_text(pilot, "1 lines with “nan”")
        assert lines_of(pilot.app, "body") == ["line with nan"]
        assert source.asked == ["search a nan"]
        await pilot.press("escape")
        await until_text(pilot, "Step 199")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, FleetScreen), what="the fleet")

    drive(opened(source), scene)


@pytest.mark.parametrize(("key", "action"), [("x", "stop"), ("X", "cancel"), ("w", "save")])
def test_an_action_asks_first(key: str, action: str) -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await pilot.press(key)
        await until_text(pilot, f"Really {action} a?")
        await pilot.press("n")
        await until(pilot, lambda: "Really" not in screen_text(pilot.app), what="no question")
        assert f"{action} a" not in source.asked
        await pilot.press(key)
        await until_text(pilot, f"Really {action} a?")
        await pilot.press("y")
        await until_text(pilot, f"done: {action}")
        assert source.asked == [f"{action} a", "refresh"]

    drive(opened(source), scene)


def test_where_something_would_be_lost_enter_does_not_lose_it() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await pilot.press("X")
        await until_text(pilot, "Really cancel a?")
        await pilot.press("enter")
        await until(pilot, lambda: "Really" not in screen_text(pilot.app), what="no question")
        assert source.asked == []

    drive(opened(source), scene)


def test_the_ssh_command_is_copied_and_the_page_opened_without_a_question() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await pilot.press("y")
        await until_text(pilot, "done: ssh")
        assert pilot.app.clipboard == "ssh -p 22 root@host"
        await pilot.press("o")
        await until_text(pilot, "no display")

    drive(opened(source), scene)


def test_an_action_that_is_not_possible_says_why() -> None:
    source = ScriptedSource(refusal=IllegalMove("cats is already COMPLETED"))

    async def scene(pilot: Pilot[None]) -> None:
        await pilot.press("x")
        await until_text(pilot, "cats is already COMPLETED")

    drive(opened(source), scene)


def test_an_error_in_a_key_is_logged_and_nothing_hangs(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(ScriptedSource):
        def set_paused(self, paused: bool) -> None:
            raise RuntimeError("a bug")

    source = Broken()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await pilot.press("p")
        await until_text(pilot, "the key did not work: a bug")
        await pilot.press("2")
        await until_text(pilot, "Rented RTX 4090")

    with caplog.at_level(logging.ERROR, logger="stationmaster.tui"):
        drive(opened(source), scene)
    assert "RuntimeError: a bug" in caplog.text


def test_colours_for_a_light_background() -> None:
    source = ScriptedSource()

    async def scene(pilot: Pilot[None]) -> None:
        await until_text(pilot, "cats-a  a")
        await pilot.press("t")
        assert pilot.app.theme == "ansi-light"
        await pilot.press("t")
        assert pilot.app.theme == "ansi-dark"

    drive(opened(source), scene)
