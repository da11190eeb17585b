"""Seconds from kill -9 of a worker until another has made progress with its job; the worst of five."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from _postgres import postgresql_url
from _report import report

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.support.chaos.loopback import WorkerForge
from tests.support.chaos.takeover import BUDGET_SECONDS, takeover_seconds


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, postgresql_url() as url, WorkerForge() as forge:
        worst = max(takeover_seconds(url, Path(folder), forge, kills=5, seed=1))
    report("takeover after kill -9", worst, "s", at_most=BUDGET_SECONDS)


if __name__ == "__main__":
    main()
