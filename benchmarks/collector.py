"""The cost of logging a step and the steps lost on SIGKILL: the collector beside other trackers.

benchmarks/collector.py --table          also print the comparison as Markdown
benchmarks/collector.py --only trackside  without the others (and without installing them)
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, astuple, dataclass
from pathlib import Path

from _report import report
from trackers.environments import python_of
from trackers.figures import Figures, Measurement, Probed


@dataclass(frozen=True, slots=True)
class Tracker:
    """A tracker of the comparison."""

    name: str
    adapter: str
    packages: tuple[str, ...] = ()


OURS = "trackside"
TRACKIO = "Trackio"
TRACKERS = (
    Tracker(OURS, "trackside_run"),
    Tracker("wandb offline", "wandb_offline", ("wandb==0.31.0",)),
    Tracker(TRACKIO, "trackio_local", ("trackio==0.43.0",)),
    Tracker("TensorBoard", "tensorboard_files", ("tensorboard==2.21.0", "tensorboardX==2.6.5")),
    Tracker("MLflow", "mlflow_sqlite", ("mlflow==3.17.2",)),
    Tracker("JSONL", "jsonl"),
    Tracker("SQLite queue", "sqlite_queue"),
)

TIGHT_BUDGET = (1.5, 6.0)  # microseconds: median, 99th percentile
PACED_BUDGET = (5.0, 25.0)
SHARE_OF_TRACKIO = 0.2
IMPORT_BUDGET_MS = 30.0
RESIDENT_BUDGET_MIB = 10.0


def main() -> int:
    chosen = _arguments()
    wanted = [tracker for tracker in TRACKERS if chosen.only in (None, tracker.name)]
    measurements = {tracker.name: one for tracker in wanted if (one := _measurement(tracker)) is not None}
    for number in range(chosen.rounds):
        for name, one in measurements.items():
            one.measure_round()
            print(f"round {number + 1}: {name}", file=sys.stderr)
    found = {name: one.figures() for name, one in measurements.items()}
    if OURS in found:
        _report_budgets(found[OURS], found.get(TRACKIO))
    if chosen.json:
        everything = {name: asdict(figures) for name, figures in found.items()}
        Path(chosen.json).write_text(json.dumps(everything, indent=1), encoding="utf-8")
    if chosen.table:
        print(_table(found))
    return 0


def _measurement(tracker: Tracker) -> Measurement | None:
    """Prepare a tracker's environment; None if it cannot be installed here."""
    try:
        python = python_of(tracker.packages)
    except subprocess.CalledProcessError:
        print(f"left out, cannot be installed: {', '.join(tracker.packages)}", file=sys.stderr)
        return None
    return Measurement(Probed(tracker.adapter, python), empty=Probed("nothing", python))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true", help="Print all figures as a Markdown table.")
    parser.add_argument("--only", choices=[tracker.name for tracker in TRACKERS], help="Measure this tracker alone.")
    parser.add_argument("--rounds", type=int, default=2, help="Run each loop this many times; the best counts.")
    parser.add_argument("--json", metavar="FILE", help="Write all figures to this file.")
    return parser.parse_args()


def _report_budgets(ours: Figures, trackio: Figures | None) -> None:
    for loop, calls, (median, p99) in (("tight", ours.tight, TIGHT_BUDGET), ("every 2 ms", ours.paced, PACED_BUDGET)):
        report(f"collector step(), {loop}: median", calls.median, "us", at_most=median)
        report(f"collector step(), {loop}: p99", calls.p99, "us", at_most=p99)
    if trackio is not None:
        for loop, calls, theirs in (("tight", ours.tight, trackio.tight), ("every 2 ms", ours.paced, trackio.paced)):
            for name, share in (("median", calls.median / theirs.median), ("p99", calls.p99 / theirs.p99)):
                report(f"collector step(), {loop}: {name} as share of Trackio's", share, "", at_most=SHARE_OF_TRACKIO)
    report("collector, SIGKILL in a tight loop: lost of 1,000 steps", ours.lost_tight, "steps", at_most=0)
    report("collector, SIGKILL at one step per 2 ms: lost of 1,000 steps", ours.lost_paced, "steps", at_most=0)
    report("collector: import", ours.import_ms, "ms", at_most=IMPORT_BUDGET_MS)
    report("collector: resident memory added", ours.resident_mib, "MiB", at_most=RESIDENT_BUDGET_MIB)


def _table(found: dict[str, Figures]) -> str:
    calls_heads = ("median", "p99", "max", "CPU")
    heads = ["", *(f"tight: {name}" for name in calls_heads), *(f"2 ms: {name}" for name in calls_heads)]
    heads += ["lost, tight", "lost, 2 ms", "bytes", "import, ms", "start, ms", "RSS, MiB"]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|--:" * (len(heads) - 1) + "|"]
    for name, one in found.items():
        calls = [value for calls in (one.tight, one.paced) for value in astuple(calls)]
        lost = [str(one.lost_tight), str(one.lost_paced)]
        rest = (one.bytes_per_step, one.import_ms, one.start_ms, one.resident_mib)
        lines.append("| " + " | ".join([name, *map(_short, calls), *lost, *map(_short, rest)]) + " |")
    return "\n".join(lines)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


if __name__ == "__main__":
    sys.exit(main())
