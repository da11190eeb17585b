"""How long after its onset a stall is flagged, with samples of the machine and by the log alone, on made-up runs."""

from __future__ import annotations

import sys
from pathlib import Path
from statistics import median

from _report import print_figure, report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from stationmaster.watch.escalation import FLAGGED, StallEvent
from tests.support.watching.machine_maker import SampledTrace
from tests.support.watching.machine_scenarios import HEALTHY, PROVEN, UNPROVEN
from tests.support.watching.watch_replay import complaint, events_of

SEEDS = (11, 12)
BUDGET_SECONDS = 440.0


def main() -> int:
    healthy = [scenario(seed) for scenario in HEALTHY.values() for seed in SEEDS]
    proven = [scenario(seed) for scenario in PROVEN.values() for seed in SEEDS]
    unproven = [scenario(seed) for scenario in UNPROVEN.values() for seed in SEEDS]
    traces = [*healthy, *proven, *unproven]
    print_figure("stalls: made-up runs with samples", len(traces), "runs")
    wrong = [trace for trace in traces if complaint(trace.made, _events(trace)) is not None]
    false_alarms = [trace for trace in healthy if _events(trace)]
    report("stalls: false alarms in healthy runs with samples", len(false_alarms), "runs", at_most=0)
    report("stalls: runs whose verdict is wrong or late with samples", len(wrong), "runs", at_most=0)
    report("stalls: median delay where the machine proves it", _median(proven), "s", at_most=BUDGET_SECONDS)
    print_figure("stalls: the same runs by the log alone", _median(proven, by_log_alone=True), "s")
    print_figure("stalls: median delay where it proves nothing", _median(unproven), "s")
    return 0


def _events(trace: SampledTrace) -> list[StallEvent]:
    return events_of(trace.made, samples=trace.samples)


def _median(traces: list[SampledTrace], *, by_log_alone: bool = False) -> float:
    delays = []
    for trace in traces:
        events = events_of(trace.made) if by_log_alone else _events(trace)
        flags = [event.at for event in events if event.kind == FLAGGED]
        delays += [flags[0] - trace.stalls[0].onset] if flags else []
    return median(delays)


if __name__ == "__main__":
    sys.exit(main())
