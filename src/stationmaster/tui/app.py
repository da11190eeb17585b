"""The terminal app: keeps the screens fed, carries out actions, and leaves the terminal as it found it."""

from __future__ import annotations

import asyncio
import logging
import math
import signal
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.message import Message

from stationmaster.errors import StationmasterError
from stationmaster.printable import plain
from stationmaster.tui import keys
from stationmaster.tui.fleet import ALL, FleetView, Notice, Tone
from stationmaster.tui.looking import DetailLooking, FleetLooking, in_thread
from stationmaster.tui.messages import ActionWanted, DetailWanted, LogsCleared, SearchWanted
from stationmaster.tui.palette import DARK, LIGHT, Palette
from stationmaster.tui.printable_lines import PrintableLines
from stationmaster.tui.screens.detail import DetailScreen
from stationmaster.tui.screens.fleet import FleetScreen
from stationmaster.tui.screens.questions import KeysScreen, QuestionScreen
from stationmaster.tui.sources.base import Action, Detail, Effect, Source
from stationmaster.tui.widgets.top_bar import TopBar

_log = logging.getLogger("stationmaster.tui")
_SEVERITIES: dict[Tone, Literal["information", "warning", "error"]] = {Tone.BAD: "error", Tone.WARNING: "warning"}
_TOAST_SECONDS = 8.0
_TOAST_PAUSE_SECONDS = 3.0
_MOST_NOTICES = 4
_THEMES = {False: "ansi-dark", True: "ansi-light"}


class FleetApp(App[None]):
    """`open_id` is shown in detail at once. `open_link` opens an address in a browser, or returns why it cannot. `now`
    is the time in seconds since 1970.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c,ctrl+q", "leave", "Quit", show=False, priority=True)]
    ENABLE_COMMAND_PALETTE = False

    @dataclass
    class Looked(Message):
        """A thread has found something, or why it has not."""

        found: FleetView | Detail | Exception
        id: str | None = None  # of the training that was looked at; None: all

    def __init__(
        self,
        source: Source,
        *,
        open_id: str | None = None,
        is_light: bool = False,
        group: str | None = None,
        open_link: Callable[[str], str | None] | None = None,
        now: Callable[[], float] = time.time,
        toast_seconds: float = _TOAST_SECONDS,
    ) -> None:
        super().__init__(ansi_color=True)  # from the start, or NO_COLOR would only turn colours into greys
        self._source = source
        self._open_id = open_id
        self._is_light = is_light
        self._open_link = open_link
        self._is_paused = False
        self._printable = PrintableLines()
        self._now = now
        self._toast_seconds = toast_seconds
        self._untold: list[Notice] = []
        self._told_at = -math.inf
        self._has_looked = False
        self._refusal: StationmasterError | None = None
        self._group = group or ALL
        self._looking = FleetLooking(source, lambda found: self._publish(found, None))
        self._detail_looking: DetailLooking | None = None

    @property
    def failure(self) -> Exception | None:
        """What ended the app other than a person."""
        return self._refusal or self._exception

    @property
    def _palette(self) -> Palette:
        return LIGHT if self._is_light else DARK

    def on_mount(self) -> None:
        self.theme = _THEMES[self._is_light]
        self.animation_level = "none"
        self._end_in_order()
        self._fleet = FleetScreen(self._source.about, self._palette, now=self._now, group=self._group)
        self.push_screen(self._fleet)
        self._looking.start()
        if self._open_id is not None:
            self._open_detail(self._open_id)

    def on_unmount(self) -> None:
        self._close_detail()
        self._looking.close()

    def get_line_filters(self) -> Sequence[LineFilter]:
        """What widgets have drawn is text only, whoever wrote it."""
        return [*super().get_line_filters(), self._printable]

    async def run_action(self, *args: Any, **kwargs: Any) -> bool:
        """Carry out what a key asks for. An error is logged and shown, and the app goes on."""
        try:
            return await super().run_action(*args, **kwargs)
        except Exception as problem:  # noqa: BLE001 (a key that fails must not end a monitor that runs for days)
            self._report(problem, doing="the key did not work")
            return True

    def on_fleet_app_looked(self, event: Looked) -> None:
        match event.found:
            case FleetView() as view:
                self._has_looked = True
                self._fleet.look(view)
                self._announce(view)
            case Detail() as detail if (screen := self._detail_screen()) is not None:
                if screen.shown_id == detail.id:
                    screen.look(detail)
            case Exception() as problem:
                self._note_problem(problem, event.id)

    def on_detail_wanted(self, event: DetailWanted) -> None:
        self._open_detail(event.id)

    def on_logs_cleared(self, event: LogsCleared) -> None:
        self._source.clear_logs()

    def on_search_wanted(self, event: SearchWanted) -> None:
        self._in_background(self._search(event.id, event.text))

    def on_action_wanted(self, event: ActionWanted) -> None:
        self._in_background(self._ask_and_act(event.id, event.action))

    def action_leave(self) -> None:
        self.exit()

    def action_look_again(self) -> None:
        self._look_again()

    def action_pause(self) -> None:
        self._is_paused = not self._is_paused
        self._source.set_paused(self._is_paused)
        if self._detail_looking is not None:
            self._detail_looking.is_paused = self._is_paused
        for screen in self.screen_stack:
            for bar in screen.query(TopBar):
                bar.set_paused(self._is_paused)

    def action_show_keys(self) -> None:
        own = ("One training", keys.DETAIL) if isinstance(self.screen, DetailScreen) else ("All", keys.FLEET)
        lines = keys.help_lines(
            ("Everywhere", (*keys.COMMON, *keys.ABOUT_THE_APP)), own, ("The training under the cursor", keys.ACTIONS)
        )
        self.push_screen(KeysScreen(lines, self._palette))

    def action_switch_theme(self) -> None:
        self._is_light = not self._is_light
        self.theme = _THEMES[self._is_light]
        for screen in self.screen_stack:
            if isinstance(screen, FleetScreen | DetailScreen):
                screen.set_palette(self._palette)

    def _print_error_renderables(self) -> None:
        """Nothing: the command line prints every error in one line, and the traceback goes to a file."""

    def _end_in_order(self) -> None:
        """A closed window or a kill leaves the app as q does, so that the terminal is restored."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if threading.current_thread() is threading.main_thread():
                loop.add_signal_handler(number, partial(self.exit, return_code=128 + number))

    def _publish(self, found: FleetView | Detail | Exception, id: str | None) -> None:
        """Called by threads."""
        self.post_message(self.Looked(found, id))

    def _look_again(self) -> None:
        self._source.refresh()
        if self._detail_looking is not None:
            self._detail_looking.again()

    def _detail_screen(self) -> DetailScreen | None:
        return next((screen for screen in self.screen_stack if isinstance(screen, DetailScreen)), None)

    def _open_detail(self, id: str) -> None:
        self._close_detail()
        self._detail_looking = DetailLooking(
            self._source, id, lambda found: self._publish(found, id), width=self.size.width
        )
        self._detail_looking.is_paused = self._is_paused
        self._detail_looking.start()
        self.push_screen(
            DetailScreen(self._source.about, self._palette, id, now=self._now), lambda _: self._close_detail()
        )

    def _close_detail(self) -> None:
        if self._detail_looking is not None:
            self._detail_looking.close()
            self._detail_looking = None

    def _note_problem(self, problem: Exception, id: str | None) -> None:
        """Before the first look a problem ends the app: a wrong address or key is for the person to mend. Later ones
        pass, or last, while the last known values are shown.
        """
        if not self._has_looked and id is None and isinstance(problem, StationmasterError):
            self._refusal = problem
            self.exit(return_code=problem.exit_code)
            return
        screen = self._fleet if id is None else self._detail_screen()
        if screen is not None:
            screen.note_problem(_words(problem))

    def _announce(self, view: FleetView) -> None:
        """One toast and one bell for all notices of a look; a fleet that always changes rings only now and then."""
        self._untold += view.notices
        if not self._untold or self._now() - self._told_at < _TOAST_PAUSE_SECONDS:
            return
        told, self._untold, self._told_at = self._untold, [], self._now()
        worst = next((tone for tone in (Tone.BAD, Tone.WARNING) if any(one.tone is tone for one in told)), Tone.NEUTRAL)
        told.sort(key=lambda notice: notice.tone is not worst)
        more = [f"and {len(told) - _MOST_NOTICES} more"] if len(told) > _MOST_NOTICES else []
        self._say("\n".join([*(notice.sentence for notice in told[:_MOST_NOTICES]), *more]), tone=worst)
        self.bell()

    async def _search(self, id: str, text: str) -> None:
        found = await in_thread(partial(self._source.search_log, id, text))
        screen = self._detail_screen()
        if screen is not None and screen.shown_id == id:
            screen.show_found(text, found)

    async def _ask_and_act(self, id: str, action: Action) -> None:
        """Whether it is possible, then the question, then the action."""
        question = await in_thread(partial(self._source.question, id, action))
        if question is not None and not await self.push_screen_wait(QuestionScreen(question)):
            return
        self._show_effect(await in_thread(partial(self._source.perform, id, action)))

    def _show_effect(self, effect: Effect) -> None:
        if effect.clipboard is not None:
            self.copy_to_clipboard(effect.clipboard)
        refusal = self._open_link(effect.link) if effect.link is not None and self._open_link is not None else None
        self._say(effect.sentence if refusal is None else f"{effect.link}: {refusal}")
        self._look_again()

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        async def run() -> None:
            try:
                await work
            except Exception as problem:  # noqa: BLE001 (shown and logged; the app goes on)
                self._report(problem)

        self.run_worker(run(), exit_on_error=False)

    def _report(self, problem: Exception, *, doing: str = "that did not work") -> None:
        if not isinstance(problem, StationmasterError):
            _log.error("%s", doing, exc_info=problem)
        self._say(_words(problem) if isinstance(problem, StationmasterError) else f"{doing}: {problem}", tone=Tone.BAD)

    def _say(self, sentence: str, *, tone: Tone = Tone.NEUTRAL) -> None:
        text = "\n".join(plain(each) for each in sentence.split("\n"))
        self.notify(text, severity=_SEVERITIES.get(tone, "information"), timeout=self._toast_seconds, markup=False)


def _words(problem: Exception) -> str:
    hint = getattr(problem, "hint", None)
    return plain(f"{problem} ({hint})" if hint else str(problem) or type(problem).__name__)
