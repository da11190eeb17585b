"""Machines at Vast.ai, whoever rented them, as a source of the app."""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence

from stationmaster.errors import IllegalMove, NotFound
from stationmaster.printable import plain
from stationmaster.station.metrics import Metrics
from stationmaster.station.monitoring import InstanceMetrics, MonitorFeed, MonitorLook
from stationmaster.times import clock_text
from stationmaster.tui.braille import Curve
from stationmaster.tui.fleet import ALL, FleetRow, FleetView
from stationmaster.tui.lines import Line, line
from stationmaster.tui.sources.base import About, Action, Detail, Effect, Question
from stationmaster.tui.sources.log_ring import LogRing
from stationmaster.tui.sources.machine_history import PointHistory
from stationmaster.tui.sources.machine_lines import cost_lines, fact_lines, machine_lines
from stationmaster.tui.sources.machine_rows import machine_row, shown_notice, summary_of

_LOG_LINES = 500
_LEAST_SECONDS = 0.9
_CONSOLE = "https://cloud.vast.ai/instances/"


class MachinesSource:
    """`open_metrics` gives what earlier monitors have stored; called only for a detail, because it takes 7 MiB. None
    where nothing is stored.
    """

    def __init__(
        self,
        feed: MonitorFeed,
        *,
        title: str,
        interval: float,
        is_made_up: bool = False,
        open_metrics: Callable[[], Metrics] | None = None,
        least_seconds: float = _LEAST_SECONDS,
    ) -> None:
        """`least_seconds` is the least time between two views: a look comes in parts, as the machines answer."""
        self.about = About(title=title, interval=interval, is_made_up=is_made_up)
        self._feed = feed
        self._open_metrics = open_metrics
        self._logs = LogRing()
        self._lock = threading.Lock()  # the detail is read by another thread
        self._machines: dict[str, InstanceMetrics] = {}
        self._rows: dict[str, FleetRow] = {}
        self._histories: dict[str, tuple[PointHistory, PointHistory]] = {}
        self._opened: _OpenedMachine | None = None
        self._at = 0.0
        self._answered_at = 0.0
        self._problem: str | None = None
        self._least_seconds = least_seconds
        self._shown_at = -math.inf
        self._is_soon = threading.Event()

    def next(self, *, seconds: float) -> FleetView | None:
        early = self._shown_at + self._least_seconds - time.monotonic()
        if early > 0 and self._is_soon.wait(min(early, seconds)):
            self._is_soon.clear()
        elif early > seconds:
            return None
        look = self._feed.next(seconds=seconds)
        if look is None:
            return None
        self._shown_at = time.monotonic()
        with self._lock:
            return self._view(look)

    def refresh(self) -> None:
        self._is_soon.set()
        self._feed.refresh()

    def set_paused(self, paused: bool) -> None:
        self._feed.set_paused(paused)

    def clear_logs(self) -> None:
        with self._lock:
            self._logs.clear()
        self._feed.clear_logs()

    def detail(self, id: str, *, width: int) -> Detail:
        with self._lock:
            machine = self._known(id)
            if self._opened is None or self._opened.id != id:
                self._opened = _OpenedMachine(machine)
                self._recall(id)
            opened, history, now = self._opened, self._histories[id], self._at
            return Detail(
                id=id,
                title=f"{id}  {plain(machine.label)}",
                facts=tuple(fact_lines(machine, now=now, width=width)),
                curves=(_loss(history[0]), _memory(history[1])),
                tabs={
                    "Log": [line(text) for text in opened.lines] or [line("nothing read yet", "dim")],
                    "Machine": list(machine_lines(machine)),
                    "Cost": list(cost_lines(machine)),
                },
                at=now,
            )

    def search_log(self, id: str, text: str) -> Sequence[Line]:
        with self._lock:
            lines = list(self._opened.lines) if self._opened is not None and self._opened.id == id else []
        return [line(each) for each in lines if text.casefold() in each.casefold()]

    def question(self, id: str, action: Action) -> Question | None:
        if action in (Action.STOP, Action.CANCEL, Action.SAVE):
            raise IllegalMove(
                f"instance {id} is only watched, not managed",
                hint=f"stationmaster adopt {shlex.quote(id)} --log GLOB --output DIR makes its training a job",
            )
        return None

    def perform(self, id: str, action: Action) -> Effect:
        if self.about.is_made_up:
            raise IllegalMove("this machine is made up")
        if action is Action.OPEN:
            return Effect(sentence="Opening your machines at Vast.ai", link=_CONSOLE)
        with self._lock:
            command = self._known(id).ssh
        if command is None:
            raise NotFound(f"how to log in to instance {id} is not known")
        return Effect(sentence=f"Copied: {plain(command)}", clipboard=command)

    def close(self) -> None:
        self._feed.close()

    def _view(self, look: MonitorLook) -> FleetView:
        snapshot = look.snapshot
        self._at = snapshot.at
        self._note_answer(look)
        rows = tuple(self._row(machine, now=snapshot.at) for machine in snapshot.instances)
        self._machines = {machine.id: machine for machine in snapshot.instances}
        self._rows = {row.id: row for row in rows}
        self._logs.keep(self._rows.keys())
        for gone in self._histories.keys() - self._rows.keys():
            del self._histories[gone]
        return FleetView(
            at=self._answered_at,
            rows=rows,
            summary=summary_of(snapshot.summary),
            logs=self._logs.entries(),
            groups=(ALL, *self._feed.groups),
            problem=self._problem,
            notices=tuple(shown_notice(notice, self._machines) for notice in look.notices),
        )

    def _note_answer(self, look: MonitorLook) -> None:
        """A problem of the provider is told once, and lasts until it answers again."""
        if not look.snapshot.stale:
            self._answered_at, self._problem = look.snapshot.at, None
        else:
            self._answered_at = self._answered_at or look.snapshot.at
            self._problem = plain(look.warnings[-1]) if look.warnings else self._problem or "the provider is silent"

    def _row(self, machine: InstanceMetrics, *, now: float) -> FleetRow:
        before = self._machines.get(machine.id)
        if machine == before and not machine.stale:
            return self._rows[machine.id]
        if fresh := machine.logged_lines - (before.logged_lines if before is not None else 0):
            new = [plain(text) for text in machine.logs[-fresh:]] if fresh > 0 else []
            self._logs.add(machine.id, new)
            if self._opened is not None and self._opened.id == machine.id:
                self._opened.lines.extend(new)
        if not machine.stale:
            loss, memory = self._histories.setdefault(machine.id, (PointHistory(), PointHistory()))
            loss.add(machine.seen_at, machine.loss)
            memory.add(machine.seen_at, machine.memory_percent)
        return machine_row(machine, now=now)

    def _known(self, id: str) -> InstanceMetrics:
        machine = self._machines.get(id)
        if machine is None:
            raise NotFound(f"instance {id} is no longer shown")
        self._histories.setdefault(id, (PointHistory(), PointHistory()))
        return machine

    def _recall(self, id: str) -> None:
        """Put what was stored earlier in front of what the app has seen."""
        if self._open_metrics is None:
            return
        metrics = self._open_metrics()
        subject = f"vastai/{id}"
        for history, name in zip(self._histories[id], ("training_loss", "memory_percent"), strict=True):
            try:
                points = metrics.series(subject, [name], axis="time", columns=200)[0].points
            except NotFound:
                continue
            history.begin_with(points.x, points.y)


class _OpenedMachine:
    """More lines of the log than the fleet keeps, of the machine that is shown in detail."""

    def __init__(self, machine: InstanceMetrics) -> None:
        self.id = machine.id
        self.lines: deque[str] = deque((plain(text) for text in machine.logs), maxlen=_LOG_LINES)


def _loss(history: PointHistory) -> Curve:
    return Curve(title="loss", x=tuple(history.x), y=tuple(history.y), ends=_ends(history))


def _memory(history: PointHistory) -> Curve:
    return Curve(
        title="memory", x=tuple(history.x), y=tuple(history.y), unit="%", bottom=0.0, top=100.0, ends=_ends(history)
    )


def _ends(history: PointHistory) -> tuple[str, str]:
    if not history.x:
        return "", ""
    last = history.x[-1]
    return clock_text(history.x[0], now=last), clock_text(last, now=last)
