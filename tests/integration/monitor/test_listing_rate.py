"""Ten minutes of monitoring an account of the simulator, in virtual time: every list call is counted as it arrives."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.vast_listing import VastListing
from stationmaster.providers.base import Pause
from stationmaster.providers.vastai.calls import Calls
from stationmaster.providers.vastai.retries import Retries
from stationmaster.simulator.harness import simulator_thread
from tests.support.asynchronous_tests import asynchronous
from tests.support.monitoring.scripted_source import Bench, ScriptedSource
from tests.support.servers.tcp_proxy import tcp_proxy
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings


class NoLimit:
    """The monitor itself must not ask too often, whatever else limits calls."""

    async def wait_for_turn(
        self, account: str, endpoint: str, *, interval_seconds: float, continues: bool = False, pause: Pause
    ) -> None:
        """At once."""

    async def note_answer(self, account: str, endpoint: str, **_times: float) -> None:
        """Nobody waits, so nobody has to know."""


@asynchronous
async def test_ten_minutes_at_an_interval_of_a_second_take_60_list_calls(tmp_path: Path) -> None:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url, closing(Customer(url)) as customer:
        rented = customer.rent(label="somebody's")
        async with tcp_proxy(int(url.rpartition(":")[2])) as proxy:
            bench = Bench(ScriptedSource(), every_seconds=1.0)
            bench.monitor._listing = VastListing(_calls(f"http://127.0.0.1:{proxy.port}"), key_path=None)
            async with bench:
                await bench.time.pass_by(599.0, while_busy=lambda: bench.monitor.is_asking)
            assert 59 <= proxy.connections <= 60
            assert _labels(bench.looks[-1]) == {str(rented): "somebody's"}
            assert bench.warnings == []


def _calls(url: str) -> Calls:
    """Every call has a connection of its own, so that connections are calls."""
    return Calls(base_url=url, api_key=API_KEY, account="default", limiter=NoLimit(), retries=Retries(attempts=1))


def _labels(look: MonitorLook) -> dict[str, str]:
    return {each.id: each.label for each in look.snapshot.instances}
