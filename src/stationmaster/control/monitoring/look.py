"""One update of all watched machines, as a face gets it."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.monitoring.instance_metrics import Snapshot
from stationmaster.control.monitoring.notices import Notice


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorLook:
    """One update of all watched machines, with the problems (a line each) and notices since the last one."""

    snapshot: Snapshot
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()
    complete: bool = True  # every machine has answered or failed; else more follows soon
    last: bool = False  # the listing has ended; only logs can still change
