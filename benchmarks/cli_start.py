"""What `stationmaster --help` costs before it does anything: processor seconds, the median of five."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from _process import cpu_seconds_of_run
from _report import report

BUDGET_SECONDS = 0.3


def main() -> int:
    command = [str(Path(sys.executable).with_name("stationmaster")), "--help"]
    cpu_seconds_of_run(command)  # the first one may still write byte code
    median = statistics.median(cpu_seconds_of_run(command) for _ in range(5))
    report("stationmaster --help", median, "CPU s", at_most=BUDGET_SECONDS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
