"""The jobs of a station, of this computer or of a server, as a source of the app."""

from __future__ import annotations

import math
import socket
import threading
import time
from collections.abc import Sequence
from urllib.parse import urlencode, urlsplit

from stationmaster.durations import format_duration
from stationmaster.errors import IllegalMove, NotFound
from stationmaster.lifecycle import TERMINAL
from stationmaster.model import SINGLE_USER, Desired, Request
from stationmaster.printable import plain
from stationmaster.station.base import Station
from stationmaster.station.jobs import JobView
from stationmaster.tui.braille import Curve
from stationmaster.tui.fleet import FleetRow, FleetView
from stationmaster.tui.lines import Line, line
from stationmaster.tui.sources.base import About, Action, Detail, Effect, Question
from stationmaster.tui.sources.job_lines import (
    advice_lines,
    checkpoint_lines,
    cost_lines,
    event_lines,
    fact_lines,
    ssh_command,
)
from stationmaster.tui.sources.job_logs import FleetLogs, LogTail
from stationmaster.tui.sources.job_rows import GROUPS, RUNNING, job_row, notices_of, summary_of

_LOOK_SECONDS = 1.0
_LOG_LINES = 2000
_LOG_PIECES = 200
_MATCHES = 1000
_CONNECT_SECONDS = 2.0
_CHART_COLUMNS = 400
_GPU_MEMORY = (".memory_used_gb", "gpu_memory_used_gb")


class JobsSource:
    def __init__(self, station: Station, *, title: str, look_seconds: float = _LOOK_SECONDS) -> None:
        self._station = station
        self.about = About(title=title, interval=look_seconds)
        self._logs = FleetLogs(station.logs)
        self._rows: dict[str, FleetRow] = {}
        self._next_at = 0.0
        self._is_paused = False
        self._wake = threading.Event()
        self._opened: _OpenedJob | None = None

    def next(self, *, seconds: float) -> FleetView | None:
        wait = min(seconds, max(0.0, self._next_at - time.monotonic()))
        if self._wake.wait(seconds if self._is_paused else wait):
            self._wake.clear()
        elif self._is_paused or time.monotonic() < self._next_at:
            return None
        try:
            return self.look()
        finally:
            # Counted from the end: where a look takes longer than that, the next one would follow at once.
            self._next_at = time.monotonic() + self.about.interval

    def refresh(self) -> None:
        self._wake.set()

    def set_paused(self, paused: bool) -> None:
        self._is_paused = paused
        if not paused:
            self._wake.set()

    def clear_logs(self) -> None:
        self._logs.clear()
        self._wake.set()

    def detail(self, id: str, *, width: int) -> Detail:
        if self._opened is None or self._opened.id != id:
            self._opened = _OpenedJob(self._station, id)
        return self._opened.look(width=width)

    def search_log(self, id: str, text: str) -> Sequence[Line]:
        found = self._station.logs.search(id, text, limit=_MATCHES)
        return [((f"{match.line:>6}  ", "dim"), (plain(match.text), "")) for match in found]

    def question(self, id: str, action: Action) -> Question | None:
        view = self._station.jobs.view(id)
        name = plain(view.job.spec.name)
        is_over = view.job.outcome is not None or view.job.state in TERMINAL
        if action in (Action.STOP, Action.CANCEL, Action.SAVE) and is_over:
            raise IllegalMove(f"{name} is already {view.shown}")
        match action:
            case Action.STOP:
                text = f"Stop {name}? Its best checkpoint is kept and its machine released."
                return Question(text=text, answer="Stop")
            case Action.CANCEL:
                lost = view.at_risk
                text = f"{lost[:1].upper()}{lost[1:]} would be lost. " if lost else ""
                return Question(
                    text=f"Cancel {name}? {text}Its machine is released at once.",
                    answer="Cancel the job",
                    is_grave=True,
                )
            case Action.SAVE:
                return Question(text=f"Have {name} write a checkpoint now? It keeps running.", answer="Save now")
            case _:
                return None

    def perform(self, id: str, action: Action) -> Effect:
        jobs = self._station.jobs
        match action:
            case Action.STOP:
                return Effect(sentence=jobs.desire(id, Desired.STOP).note)
            case Action.CANCEL:
                return Effect(sentence=jobs.desire(id, Desired.CANCEL).note)
            case Action.SAVE:
                return Effect(sentence=jobs.ask(id, Request.SAVE).note)
            case Action.OPEN:
                return _open_page(self._station, id)
            case Action.SSH:
                return _copy_ssh(jobs.view(id))

    def close(self) -> None:
        self._wake.set()

    def look(self, only: str | None = None) -> FleetView:
        """All jobs now, or one of them."""
        overview = self._station.overview.look()
        rows = tuple(job_row(row, now=overview.as_of) for row in overview.rows if only in (None, row.id))
        notices = notices_of(self._rows, rows)
        self._rows = {row.id: row for row in rows}
        return FleetView(
            at=time.time(),
            rows=rows,
            summary=summary_of(overview, rows),
            logs=self._logs.read(row.id for row in rows if RUNNING in row.groups),
            groups=GROUPS,
            notices=tuple(notices),
        )


class _OpenedJob:
    """What the detail screen shows of one job; series and analysis are read again only when they have changed."""

    def __init__(self, station: Station, id: str) -> None:
        self.id = id
        self._station = station
        self._log = LogTail(station.logs, id, most=_LOG_LINES, first_pieces=_LOG_PIECES)
        self._events: list[Line] = []
        self._last_version = 0
        self._series_version: str | None = None
        self._curves = (Curve(title="loss"), Curve(title="memory"))

    def look(self, *, width: int) -> Detail:
        station = self._station
        view = station.jobs.view(self.id, watching=True)
        fresh = station.events.of_job(self.id, after_version=self._last_version)
        self._events += event_lines(fresh, now=view.now)
        self._last_version = fresh[-1].job_version if fresh else self._last_version
        self._log.read()
        paid = station.costs.lines(self.id)
        advice = station.analyses.stored(self.id)
        return Detail(
            id=self.id,
            title=f"{plain(view.job.spec.name)}  {self.id}",
            facts=tuple(fact_lines(view, width=width)),
            curves=self._drawn(view),
            tabs={
                "Log": [line(text) for text in self._log.shown()] or [line("nothing printed yet", "dim")],
                "Events": list(self._events),
                "Checkpoints": list(checkpoint_lines(view.checkpoints, now=view.now))
                or [line("no checkpoint yet", "dim")],
                "Cost": list(cost_lines(view, paid, now=view.now)),
                "Advice": list(advice_lines(advice, job_id=self.id, width=width)),
            },
            at=time.time(),
        )

    def _drawn(self, view: JobView) -> tuple[Curve, Curve]:
        version = self._station.metrics.version(self.id)
        if version != self._series_version:
            self._series_version = version
            self._curves = self._loss(), self._memory(view)
        return self._curves

    def _loss(self) -> Curve:
        try:
            found = self._station.metrics.series(self.id, ["loss"], columns=_CHART_COLUMNS)
        except NotFound:
            return Curve(title="loss")
        points = found[0].points
        ends = (f"step {points.x[0]:.0f}", f"step {points.x[-1]:.0f}") if points.x else ("", "")
        return Curve(title="loss", x=tuple(points.x), y=_numbers(points.y), ends=ends)

    def _memory(self, view: JobView) -> Curve:
        """That of the first GPU; on a machine without one that of the system."""
        there = self._station.metrics.contents(self.id).series
        name = next((each for each in there if each.endswith(_GPU_MEMORY)), "used_memory_gb")
        if name not in there:
            return Curve(title="memory")
        points = self._station.metrics.series(self.id, [name], axis="time", columns=_CHART_COLUMNS)[0].points
        lasted = format_duration(points.x[-1] - points.x[0]) if points.x else ""
        is_gpu = name != "used_memory_gb"
        return Curve(
            title="GPU memory" if is_gpu else "system memory",
            x=tuple(points.x),
            y=_numbers(points.y),
            unit=" GB",
            ends=("0", lasted),
            bottom=0.0,
            top=view.gpu_gib if is_gpu else None,
        )


def _open_page(station: Station, id: str) -> Effect:
    """A link that signs the browser in and leads to the job. Raises NotFound if nothing answers there."""
    signing_in = station.tokens.create_link(SINGLE_USER)
    address = urlsplit(signing_in.url)
    try:
        place = (address.hostname or "", address.port or (443 if address.scheme == "https" else 80))
        socket.create_connection(place, timeout=_CONNECT_SECONDS).close()
    except OSError:
        raise NotFound(f"no page is served at {address.netloc}", hint="run `stationmaster up`") from None
    return Effect(
        sentence=f"Opening the page at {address.netloc}",
        link=address._replace(query=urlencode({"next": f"/jobs/{id}"})).geturl(),
    )


def _copy_ssh(view: JobView) -> Effect:
    command = ssh_command(view)
    if command is None:
        raise NotFound(f"{plain(view.job.spec.name)} has no machine to log in to now")
    return Effect(sentence=f"Copied: {command}", clipboard=command)


def _numbers(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(math.nan if value is None else value for value in values)
