"""Several simulators on one computer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from stationmaster.simulator.harness import simulator_thread
from stationmaster.simulator.machines.marked_processes import find_marked
from tests.support.vast.simulated_vast import Customer, quick_settings


@contextmanager
def a_machine(home: Path, login: Any) -> Iterator[tuple[Customer, dict[str, Any], str]]:
    """A customer of a simulator of its own, with one machine on which something runs, and that machine's mark."""
    with simulator_thread(quick_settings(home, seed=3)) as url:
        customer = Customer(url)
        try:
            customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
            machine = customer.rent_running()
            login.leave_running(machine, "sleep 600")
            yield customer, machine, login.output(machine, "echo $STATIONMASTER_MACHINE")
        finally:
            customer.close()


def test_ending_a_machine_leaves_its_twin_of_a_simulator_with_the_same_seed_alone(tmp_path: Path, login: Any) -> None:
    with ExitStack() as stack:
        here, mine, _ = stack.enter_context(a_machine(tmp_path / "one", login))
        _, twin, mark = stack.enter_context(a_machine(tmp_path / "two", login))
        assert mine["id"] == twin["id"]
        assert find_marked(mark)
        here.destroy(mine["id"])
        assert find_marked(mark)
