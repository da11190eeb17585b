"""Trainings that go wrong on rented machines, watched with the product's own limits.

`python -m tests.chaos.watched_marathon`: those of `tests/acceptance/test_watched_runs.py` and more, at real times: a
window of ten minutes, fifteen of grace, a poll every minute, a link cut for twenty minutes. Takes an hour or two,
nearly all of it waiting. `--quick` takes seconds instead of minutes, to try the program itself. Ends with 1 at the
first broken promise.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
import traceback
from dataclasses import replace
from pathlib import Path

import structlog

from stationmaster.model import Outcome, Reason
from tests.acceptance.test_watched_runs import SECONDS
from tests.support.watching.watched_scenarios import NAMES, Scale, WatchedStation, watched_station

REAL = Scale(
    step_seconds=2.0,
    healthy_steps=900,  # half an hour: three windows
    save_every=150,
    endless_steps=6000,
    pauses_steps=1500,
    cut_seconds=1200.0,
    cut_steps=1200,
    patience_seconds=3 * 3600.0,
    environ={"STATIONMASTER_ARTIFACTS__EVERY": "0"},
    pace={},
)
QUICK = replace(SECONDS, names=NAMES, own={**SECONDS.own, "crawls": {"save_timeout": 10.0}})
ENDS = {
    "cut": (Outcome.COMPLETED, Reason.FINISHED),
    "pauses": (Outcome.COMPLETED, Reason.FINISHED),
    "crawls": (Outcome.INCOMPLETE, Reason.STALLED),
    "hangs": (Outcome.INCOMPLETE, Reason.STALLED),
    "saves": (Outcome.INCOMPLETE, Reason.STALLED),
    "nans": (Outcome.INCOMPLETE, Reason.ANOMALY),
}
LAST_MESSAGES = {Outcome.COMPLETED: "✅ Training completed", Outcome.INCOMPLETE: "🟡 Training ended early"}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    scale = QUICK if parser.parse_args().quick else REAL
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="watched-") as folder, watched_station(scale, Path(folder)) as station:
            _check(station, began)
    except AssertionError:
        traceback.print_exc()
        return 1
    print(f"six watched trainings in {time.monotonic() - began:.0f} s, each ended as promised")
    return 0


def _check(station: WatchedStation, began: float) -> None:
    station.cut()
    station.pause()
    for name in NAMES:
        job = station.until_ended(name)
        kinds = station.kinds(name)
        assert (job.outcome, job.reason) == ENDS[name], f"{name} ended {job.outcome} {job.reason}: {job.explanation}"
        assert Path(job.model.address or "").is_file(), f"the model of {name} is lost"
        flags = [kind for kind in kinds if kind in ("stall_flagged", "stall_cleared", "terminate")]
        assert flags == _flags(name), f"{name}: {flags}"
        assert job.outcome is not None
        last = LAST_MESSAGES[job.outcome]
        station.until(lambda: last in station.titles(name), f"the last message about {name}")  # noqa: B023
        print(
            f"{time.monotonic() - began:6.0f} s  {name} ended {job.outcome} {job.reason}", file=sys.stderr, flush=True
        )
    station.storm.check()


def _flags(name: str) -> list[str]:
    if name == "pauses":
        return ["stall_flagged", "stall_cleared"]
    return ["stall_flagged", "terminate"] if ENDS[name][1] is Reason.STALLED else []


if __name__ == "__main__":
    sys.exit(main())
