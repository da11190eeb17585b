"""Runs the terminal app without a terminal, presses its keys, and reads its screen as text."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot

from stationmaster.tui.app import FleetApp
from stationmaster.tui.lines import text_of
from stationmaster.tui.widgets.fleet_table import FleetTable
from stationmaster.tui.widgets.line_view import LineView

Scene = Callable[[Pilot[None]], Awaitable[None]]
_DEADLINE_SECONDS = 10.0


def drive(app: FleetApp, scene: Scene, *, size: tuple[int, int] = (120, 40)) -> None:
    """Run the app and the scene; raises what went wrong in either."""

    async def run() -> None:
        async with app.run_test(size=size, notifications=True) as pilot:
            await scene(pilot)

    asyncio.run(run())


async def until(pilot: Pilot[None], is_true: Callable[[], bool], *, what: str) -> None:
    """Give the app turns until the condition holds."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _DEADLINE_SECONDS
    while not is_true():
        if loop.time() > deadline:
            raise AssertionError(f"waited in vain for {what}; the screen is:\n{screen_text(pilot.app)}")
        await pilot.pause(0.01)


async def until_text(pilot: Pilot[None], text: str) -> None:
    await until(pilot, lambda: text in screen_text(pilot.app), what=repr(text))


def screen_text(app: object) -> str:
    """What is on the screen, line by line."""
    assert isinstance(app, FleetApp)
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text.rstrip() for strip in strips)


def table(app: object) -> FleetTable:
    assert isinstance(app, FleetApp)
    return app.screen.query_one(FleetTable)


def lines_of(app: object, id: str) -> list[str]:
    """The lines of a part of the screen, with what is scrolled out of it."""
    assert isinstance(app, FleetApp)
    return [text_of(each) for each in app.screen.query_one(f"#{id}", LineView).lines]
