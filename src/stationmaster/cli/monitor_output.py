"""What `stationmaster monitor` prints without its app: JSON, a table, or plain lines."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Protocol

from stationmaster.cli.context import print_json
from stationmaster.cli.pausing import pause
from stationmaster.cli.render import dollars, instant
from stationmaster.cli.terminal import PIPE_WIDTH
from stationmaster.station.monitoring import InstanceMetrics, InstancesSummary, MonitorFeed, MonitorLook
from stationmaster.tui.fleet import FleetView
from stationmaster.tui.plain import SpokenRows, summary_sentence, table_lines
from stationmaster.tui.sources.machine_rows import machine_row, shown_notice, summary_of

_MADE_UP = "MOCK DATA: these machines are made up."
_COMPLETE_SECONDS = 10.0  # the longest that a machine's log may take


class Output(Protocol):
    def show(self, look: MonitorLook) -> None: ...


def print_looks(feed: MonitorFeed, output: Output, *, every_seconds: float, once: bool) -> int:
    """Print one look per interval until interrupted or, with `once`, one in all; the exit code."""
    for look in _looks(feed, every_seconds=every_seconds):
        output.show(look)
        sys.stdout.flush()
        if once:
            return 1 if look.snapshot.stale else 0
        if look.last and look.complete:
            break
    return 0


class JsonOutput:
    """One object per line, or one in all."""

    def __init__(self, *, repeated: bool) -> None:
        self._repeated = repeated

    def show(self, look: MonitorLook) -> None:
        if self._repeated:
            print_json(look_json(look), indent=None)
        else:
            print_json(look_json(look))


class TableOutput:
    def show(self, look: MonitorLook) -> None:
        width = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
        _print([*([_MADE_UP] if look.snapshot.made_up else []), *table_lines(_view(look), width=width)])


class PlainOutput:
    """Sentences without signs that cannot be read out; after the first look only of machines that changed."""

    def __init__(self) -> None:
        self._spoken = SpokenRows()
        self._is_marked = False

    def show(self, look: MonitorLook) -> None:
        view = _view(look)
        lines = [_MADE_UP] if look.snapshot.made_up and not self._is_marked else []
        self._is_marked = True
        lines += self._spoken.changed(view.rows)
        lines += [f"Notice: {notice.sentence}" for notice in view.notices]
        if lines or not view.rows:
            lines.append(f"Summary: {summary_sentence(view.summary)}")
        _print(lines)


def look_json(look: MonitorLook) -> dict[str, Any]:
    """One update as JSON; names are stable, money is in dollars, unknown is null."""
    snapshot = look.snapshot
    return {
        "at": instant(snapshot.at),
        "stale": snapshot.stale,
        "made_up": snapshot.made_up,
        "instances": [_instance_json(each) for each in snapshot.instances],
        "summary": _summary_json(snapshot.summary),
        "notices": [
            {"at": instant(each.at), "instance": each.instance, "kind": each.kind.value, "sentence": each.sentence}
            for each in look.notices
        ],
    }


def _looks(feed: MonitorFeed, *, every_seconds: float) -> Iterator[MonitorLook]:
    """One look per interval: the first complete one, or at its end the newest."""
    while True:
        began, newest = time.monotonic(), None
        limit = began + max(every_seconds, _COMPLETE_SECONDS)
        while newest is None or not (newest.complete or time.monotonic() > limit):
            look = feed.next(seconds=0.5)
            if look is not None and newest is not None:
                look = replace(
                    look, warnings=(*newest.warnings, *look.warnings), notices=(*newest.notices, *look.notices)
                )
            newest = look or newest
        yield newest
        pause(began + every_seconds - time.monotonic())


def _instance_json(instance: InstanceMetrics) -> dict[str, Any]:
    return {
        "id": instance.id,
        "label": instance.label,
        "gpu_type": instance.gpu_type,
        "status": instance.status,
        "health": instance.health_status().value,
        "epoch": instance.epoch,
        "total_epochs": instance.total_epochs,
        "step": instance.step,
        "total_steps": instance.total_steps,
        "progress_percentage": _rounded(instance.progress_percentage()),
        "loss": instance.loss,
        "gpu_percent": instance.gpu_percent,
        "memory_percent": _rounded(instance.memory_percent),
        "cost_per_hour_usd": dollars(instance.cost_per_hour),
        "total_cost_usd": dollars(instance.total_cost),
        "runtime_seconds": _rounded(instance.runtime_seconds),
        "eta_seconds": _rounded(instance.eta_seconds()),
        "eta": instance.eta(),
        "logs": list(instance.logs),
        "logged_lines": instance.logged_lines,
        "groups": list(instance.groups),
        "ssh": instance.ssh,
        "seen_at": instant(instance.seen_at or None),
        "stale": instance.stale,
        "problem": instance.problem,
    }


def _summary_json(summary: InstancesSummary) -> dict[str, Any]:
    return {
        "running": summary.running,
        "instances": summary.instances,
        "errors": summary.errors,
        "total_cost_usd": dollars(summary.total_cost),
        "cost_per_hour_usd": dollars(summary.cost_per_hour),
        "average_cost_per_hour_usd": dollars(summary.average_cost_per_hour),
        "average_gpu_percent": _rounded(summary.average_gpu_percent),
        "average_memory_percent": _rounded(summary.average_memory_percent),
        "trajectory": [{"in_hours": hours, "total_cost_usd": dollars(amount)} for hours, amount in summary.trajectory],
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 1)


def _view(look: MonitorLook) -> FleetView:
    snapshot = look.snapshot
    machines = {machine.id: machine for machine in snapshot.instances}
    return FleetView(
        at=snapshot.at,
        rows=tuple(machine_row(machine, now=snapshot.at) for machine in snapshot.instances),
        summary=summary_of(snapshot.summary),
        notices=tuple(shown_notice(notice, machines) for notice in look.notices),
    )


def _print(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
