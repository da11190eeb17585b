"""Statuses of a training that hangs asleep: its samples lead to an early flag, at a look that comes when it is due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stationmaster.control.states.executing.status_intake import ExecutingView, status_write
from stationmaster.model import Job, State
from stationmaster.remote.status import LogPiece, Status, StepStatus, Supervisor
from stationmaster.series.table import Table, table_of
from tests.support.jobs.spine_values import MACHINE, job, visit

BEGIN, ONSET, STEP_SECONDS, SAMPLE_SECONDS = 10_000.0, 10_900.0, 2.0, 5.0
TRAIN = StepStatus(index=0, name="train", state="running", training=True, started_at=BEGIN, try_number=1)


@dataclass
class HangingTraining:
    """Prints a step every two seconds, then sleeps; its recorder samples all the time."""

    state: str | None = "asleep"  # what the sampler sees of it once it hangs
    read_until: float = BEGIN

    def status(self, now: float) -> Status:
        begin, self.read_until = self.read_until, now
        values: dict[str, Any] = {
            "wall": now, "monotonic": now, "boot_id": "b", "started": True, "training_alive": True,
            "supervisor": Supervisor(alive=True, pid=1), "steps": (TRAIN,),
            "log": self._log(begin, min(now, ONSET)), "series": self._series(begin, now),
        }  # fmt: skip
        return Status(**values)

    def _log(self, begin: float, end: float) -> tuple[LogPiece, ...]:
        steps = range(int((begin - BEGIN) / STEP_SECONDS) + 1, int((end - BEGIN) / STEP_SECONDS) + 1)
        lines = [f"Step {step}: Loss = 0.5\n".encode() for step in steps]
        lengths = [sum(map(len, lines[: place + 1])) for place in range(len(lines))]
        times = tuple((length, BEGIN + step * STEP_SECONDS) for length, step in zip(lengths, steps, strict=True))
        data = b"".join(lines)
        piece = LogPiece(stream="0.1", inode=1, start=0, end=len(data), restarted=False, data=data, times=times)
        return (piece,) if data else ()

    def _series(self, begin: float, end: float) -> tuple[Table, ...]:
        first = int(begin / SAMPLE_SECONDS) + 1
        at = [place * SAMPLE_SECONDS for place in range(first, int(end / SAMPLE_SECONDS) + 1)]
        if not at:
            return ()
        rests = [moment > ONSET for moment in at]
        rows: dict[str, Any] = {"id": list(range(first, first + len(at))), "timestamp": at}
        processes: dict[str, Any] = {
            **rows,
            "pid": [7] * len(at),
            "role": ["main"] * len(at),
            "memory_gb": [6.0] * len(at),
            "cpu_percent": [0.5 if rest else 120.0 for rest in rests],
            "io_mb_per_second": [0.0 if rest else 3.0 for rest in rests],
            "state": [self.state if rest else None for rest in rests],
        }
        gpus: dict[str, Any] = {
            **rows,
            "gpu_index": [0] * len(at),
            "utilization_percent": [0.0 if rest else 97.0 for rest in rests],
        }
        network = {f"network_{way}_mb_per_second": [0.001] * len(at) for way in ("received", "sent")}
        return (
            table_of("GpuSample", gpus),
            table_of("ResourceSample", {**rows, **network}),
            table_of("ProcessSample", processes),
        )


def flagged(training: HangingTraining) -> tuple[float, str]:
    """When the stall is flagged, in seconds after the onset, and why; looks come when the job is due."""
    before: Job = job(state=State.EXECUTING, state_since=BEGIN, machine=MACHINE)
    now = BEGIN
    while now < ONSET + 3600:
        view = ExecutingView(visit=visit(before, now=now), status=training.status(now), framework="auto")
        assert view.status is not None
        write = status_write(view, view.status)
        for event in write.events:
            if event.kind == "stall_flagged":
                return now - ONSET, str(event.payload["reason"])
        before = write.job
        assert write.due_in is not None
        now += max(1.0, write.due_in)
    raise AssertionError("never flagged")


def test_a_training_that_sleeps_is_flagged_when_six_minutes_of_samples_prove_it() -> None:
    seconds, reason = flagged(HangingTraining())
    assert 360 < seconds < 400
    assert "GPU 0 %, CPU 0 %, nothing read or written, the process asleep" in reason


def test_without_the_state_of_its_processes_the_window_of_ten_minutes_decides() -> None:
    seconds, reason = flagged(HangingTraining(state=None))
    assert 600 < seconds < 665
    assert "asleep" not in reason
