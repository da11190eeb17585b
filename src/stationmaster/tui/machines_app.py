"""The app with machines that anybody rented at Vast.ai."""

from __future__ import annotations

from collections.abc import Callable

from stationmaster.station.metrics import Metrics
from stationmaster.station.monitoring import MonitorFeed
from stationmaster.tui.app import FleetApp
from stationmaster.tui.running import run_app
from stationmaster.tui.sources.machines import MachinesSource


def run_machines(
    feed: MonitorFeed,
    *,
    made_up: bool,
    interval: float,
    open_metrics: Callable[[], Metrics] | None = None,
    is_light: bool = False,
    group: str | None = None,
    open_link: Callable[[str], str | None] | None = None,
) -> int:
    """Show the machines until the person quits; the exit code. `open_metrics` has what earlier monitors have stored."""
    title = "Machines" if made_up else "Machines at Vast.ai"
    source = MachinesSource(feed, title=title, interval=interval, is_made_up=made_up, open_metrics=open_metrics)
    return run_app(FleetApp(source, is_light=is_light, group=group, open_link=open_link))
