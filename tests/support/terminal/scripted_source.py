"""A source of the terminal app whose looks, details and answers a test writes itself."""

from __future__ import annotations

import queue
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from stationmaster.money import ZERO, MicroDollars
from stationmaster.tui.braille import Curve
from stationmaster.tui.fleet import ALL, FleetRow, FleetSummary, FleetView, LogEntry, Notice, Tone, trajectory
from stationmaster.tui.lines import Line, line
from stationmaster.tui.sources.base import About, Action, Detail, Effect, Question

AT = 1_790_000_000.0


def row(id: str, **values: object) -> FleetRow:
    usual = FleetRow(
        id=id,
        name=f"cats-{id}",
        status="running",
        icon="✅",
        tone=Tone.GOOD,
        gpu="RTX 4090",
        progress=50.0,
        gpu_percent=85.2,
        memory_percent=42.1,
        loss=0.1234,
        cost_per_hour=MicroDollars(467_000),
        total_cost=MicroDollars(15_230_000),
        eta_seconds=2700.0,
        seen_at=AT,
    )
    return replace(usual, **values)  # type: ignore[arg-type]


def summary(rows: Sequence[FleetRow]) -> FleetSummary:
    total = MicroDollars(sum((each.total_cost for each in rows), ZERO))
    rate = MicroDollars(sum((each.cost_per_hour or ZERO for each in rows), ZERO))
    return FleetSummary(
        running=sum(each.status in ("running", "training") for each in rows),
        total=len(rows),
        errors=sum(each.tone is Tone.BAD for each in rows),
        total_cost=total,
        cost_per_hour=rate,
        average_cost_per_hour=MicroDollars(rate // max(1, len(rows))),
        gpu_percent=63.2,
        memory_percent=31.9,
        trajectory=trajectory(total, rate),
    )


def view(*rows: FleetRow, at: float = AT, **values: object) -> FleetView:
    usual = FleetView(at=at, rows=rows, summary=summary(rows))
    return replace(usual, **values)  # type: ignore[arg-type]


def log_entry(id: str, text: str) -> LogEntry:
    return LogEntry(id=id, line=((f"#{id} ", "accent"), (text, "")))


def notice(sentence: str, tone: Tone = Tone.WARNING) -> Notice:
    return Notice(sentence=sentence, tone=tone)


@dataclass
class ScriptedSource:
    """`looks` are shown one after another; everything that the app asks is written down in `asked`."""

    about: About = field(default_factory=lambda: About(title="Machines", interval=1.0))
    looks: queue.Queue[FleetView | Exception] = field(default_factory=queue.Queue)
    asked: list[str] = field(default_factory=list)
    details: dict[str, Detail] = field(default_factory=dict)
    refusal: Exception | None = None
    is_blocked: threading.Event = field(default_factory=threading.Event)  # while set, nothing answers
    released: threading.Event = field(default_factory=threading.Event)

    def show(self, look: FleetView | Exception) -> None:
        self.looks.put(look)

    def next(self, *, seconds: float) -> FleetView | None:
        self._wait()
        try:
            found = self.looks.get(timeout=min(seconds, 0.05))
        except queue.Empty:
            return None
        if isinstance(found, Exception):
            raise found
        return found

    def refresh(self) -> None:
        self.asked.append("refresh")

    def set_paused(self, paused: bool) -> None:
        self.asked.append("pause" if paused else "resume")

    def clear_logs(self) -> None:
        self.asked.append("clear")

    def detail(self, id: str, *, width: int) -> Detail:
        self._wait()
        if self.refusal is not None:
            raise self.refusal
        return self.details.get(id) or detail(id)

    def search_log(self, id: str, text: str) -> Sequence[Line]:
        self.asked.append(f"search {id} {text}")
        return [line(f"line with {text}")]

    def question(self, id: str, action: Action) -> Question | None:
        self._wait()
        if self.refusal is not None:
            raise self.refusal
        if action in (Action.OPEN, Action.SSH):
            return None
        grave = action is Action.CANCEL
        return Question(text=f"Really {action.value} {id}?", answer=action.value.capitalize(), is_grave=grave)

    def perform(self, id: str, action: Action) -> Effect:
        self.asked.append(f"{action.value} {id}")
        clipboard = "ssh -p 22 root@host" if action is Action.SSH else None
        link = "http://127.0.0.1/jobs/1" if action is Action.OPEN else None
        return Effect(sentence=f"done: {action.value}", clipboard=clipboard, link=link)

    def close(self) -> None:
        self.released.set()

    def _wait(self) -> None:
        if self.is_blocked.is_set():
            self.released.wait(30)


def detail(id: str, **values: object) -> Detail:
    usual = Detail(
        id=id,
        title=f"cats-{id}  {id}",
        facts=(line("running"), line("● no stall: the training moves at its own pace", "good")),
        curves=(
            Curve(title="loss", x=(1.0, 2.0, 3.0), y=(3.0, 2.0, 1.0), ends=("step 1", "step 3")),
            Curve(title="memory"),
        ),
        tabs={
            "Log": [line(f"Step {number}") for number in range(200)],
            "Events": [line("Rented RTX 4090")],
            "Checkpoints": [line("cats.safetensors")],
            "Cost": [line("so far $1.00")],
            "Advice": [line("1. use a smaller batch")],
        },
        at=AT,
    )
    return replace(usual, **values)  # type: ignore[arg-type]


ALL_GROUPS = (ALL, "blue", "green")
