"""The app with the jobs of a station."""

from __future__ import annotations

from collections.abc import Callable

from stationmaster.station.base import Station
from stationmaster.tui.app import FleetApp
from stationmaster.tui.running import run_app
from stationmaster.tui.sources.jobs import JobsSource


def run_jobs(
    station: Station,
    *,
    title: str,
    job_id: str | None = None,
    is_light: bool = False,
    open_link: Callable[[str], str | None] | None = None,
) -> int:
    """Show all jobs, or first the one with this id, until the person quits; the exit code."""
    source = JobsSource(station, title=title)
    return run_app(FleetApp(source, open_id=job_id, is_light=is_light, open_link=open_link))
