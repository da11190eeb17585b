"""An error that nobody expected."""

from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.api.app import Service
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.station import LocalStation
from tests.support.servers.api_server import serving
from tests.support.servers.gate_bench import gate_bench


class Broken(LocalStation):
    def now(self) -> float:
        raise ZeroDivisionError("something secret")


def test_it_is_a_problem_like_any_other_and_its_details_are_only_in_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with gate_bench(tmp_path) as bench, bench.client(bench.token) as client:
        broken = Broken(bench.station.settings, {})
        with serving(Service(station=broken, doorkeeper=LocalDoorkeeper(bench.station.store))) as url:
            answer = client.get(f"{url}/api/server")
            assert client.get(f"{url}/healthz").status_code == 200
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "secret" not in answer.text
    said = capsys.readouterr().out
    assert "request.failed" in said
    assert "something secret" in said
