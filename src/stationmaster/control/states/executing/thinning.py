"""Thins what a machine makes a job record, so that no training fills the store. Pure.

Log and measured values have a size limit in the store. The other rows are counted here: near its limit a job records
fewer of them with every visit, and never more than the limit in all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from stationmaster.model import Watching
from stationmaster.model.copying import changed
from stationmaster.model.intake_limits import JOB_CHECKPOINTS, JOB_EVENTS, JOB_READINGS
from stationmaster.store.writes import NewEvent, Write

LIMITS: Mapping[str, int] = MappingProxyType(
    {"readings": JOB_READINGS, "events": JOB_EVENTS, "checkpoints": JOB_CHECKPOINTS}
)

_SHARE = 32  # one visit may use this part of the room that is left: the end of a flood is recorded too

_Row = TypeVar("_Row")


def thinned(write: Write) -> Write:
    """The write with as many rows as the job may still record, and a note for each kind that is thinned from now on."""
    sent = {"readings": len(write.readings), "events": len(write.events), "checkpoints": len(write.checkpoints)}
    if not any(sent.values()):
        return write
    watching = write.job.watching
    readings = _spread(write.readings, _room(watching, "readings"))
    events = write.events[: _room(watching, "events")]
    checkpoints = write.checkpoints[: _room(watching, "checkpoints")]
    kept = {"readings": len(readings), "events": len(events), "checkpoints": len(checkpoints)}
    fresh = tuple(kind for kind in LIMITS if kept[kind] < sent[kind] and kind not in watching.thinned)
    watching = changed(
        watching,
        recorded={kind: watching.recorded.get(kind, 0) + kept[kind] for kind in LIMITS},
        thinned=(*watching.thinned, *fresh),
    )
    notes = (NewEvent(kind="thinned", payload={"what": kind, "most": LIMITS[kind]}) for kind in fresh)
    return changed(
        write,
        job=changed(write.job, watching=watching),
        readings=readings,
        events=(*events, *notes),
        checkpoints=checkpoints,
    )


def _room(watching: Watching, kind: str) -> int:
    return max(0, LIMITS[kind] - watching.recorded.get(kind, 0)) // _SHARE


def _spread(rows: tuple[_Row, ...], most: int) -> tuple[_Row, ...]:
    """At most `most` of the rows, evenly spaced, always with the last one."""
    if len(rows) <= most:
        return rows
    return tuple(_every(rows, -(-len(rows) // most))) if most else ()


def _every(rows: Sequence[_Row], distance: int) -> Sequence[_Row]:
    return rows[::-distance][::-1]
