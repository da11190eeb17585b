"""Files that are not what the machine reported: looked at again, then left out. Pure."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.control.flow.step import at_fault, recovered, wait
from stationmaster.errors import MachineFault
from stationmaster.model import Fetching, Job, OutputFile
from stationmaster.recipes.schema import OutputKind
from stationmaster.store.writes import NewEvent, Write

_SECOND_LOOKS = 2  # the machine may still have been writing it


def may_be_an_accident(job: Job) -> bool:
    """Whether the inventory is taken again before a false file is left out."""
    return job.setbacks.faults <= _SECOND_LOOKS


def without_false_file(job: Job, file: OutputFile, problem: MachineFault, *, is_further: bool) -> Write:
    """The job without the file, whose machine is at fault; the next best model takes the place of a false one."""
    event = NewEvent(kind="file_false", payload={"path": file.path, "problem": str(problem)})
    after = at_fault(recovered(job), str(problem))
    fetching = _without(job.fetching, file, is_further=is_further)
    return wait(replace(after, fetching=fetching, machine=replace(after.machine, transfer=None)), 0.0, events=(event,))


def _without(fetching: Fetching, file: OutputFile, *, is_further: bool) -> Fetching:
    if is_further:
        return replace(fetching, further_checkpoints=fetching.further_checkpoints[1:])
    rest = (fetching.wanted or ())[1:]
    if file.kind != OutputKind.CHECKPOINT:
        return replace(fetching, wanted=rest)
    return replace(fetching, wanted=(*fetching.spare_models[:1], *rest), spare_models=fetching.spare_models[1:])
