"""Two workers share a PostgreSQL store; one is killed, the other goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chaos.loopback import WorkerForge
from tests.support.chaos.takeover import BUDGET_SECONDS, takeover_seconds
from tests.support.servers.postgres import PostgresServer


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_a_killed_workers_job_goes_on_within_thirty_seconds_in_all_kills(
    kills: int, tmp_path: Path, forge: WorkerForge, postgres_server: PostgresServer
) -> None:
    seconds = takeover_seconds(postgres_server.new_store(), tmp_path, forge, kills=kills, seed=20)
    assert len(seconds) == kills
    assert all(0 < each <= BUDGET_SECONDS for each in seconds), seconds
