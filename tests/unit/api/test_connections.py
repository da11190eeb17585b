"""Who gets a place among the open connections, and who makes room."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from stationmaster.api.connections import ConnectionLimits, Connections


@dataclass
class FakeClient:
    waits_since: float | None = None
    is_closed: bool = False

    def give_up(self) -> None:
        self.is_closed = True


class Bench:
    """Connections of a service, without a network: each is one end of a pair."""

    def __init__(self, **limits: object) -> None:
        self.now = 0.0
        self.connections = Connections(ConnectionLimits(**limits), clock=lambda: self.now)  # type: ignore[arg-type]
        self.pairs: list[tuple[socket.socket, socket.socket]] = []

    def connect(self, host: str, waits_since: float | None = None) -> tuple[FakeClient, Callable[[], None] | None]:
        ours, theirs = socket.socketpair()
        self.pairs.append((ours, theirs))
        leave = self.connections.admit(ours, host)
        client = FakeClient(waits_since)
        if leave is not None:
            self.connections.meet(ours.fileno(), client)
        return client, leave

    def close(self) -> None:
        for ours, theirs in self.pairs:
            ours.close()
            theirs.close()


def with_bench(test: Callable[[Bench], None], **limits: object) -> None:
    async def run() -> None:
        bench = Bench(**limits)
        try:
            test(bench)
        finally:
            bench.close()

    asyncio.run(run())


def test_at_the_limit_the_address_with_most_waiting_connections_makes_room_with_its_oldest() -> None:
    def test(bench: Bench) -> None:
        patient, _ = bench.connect("192.0.2.1", waits_since=1.0)
        crowd = [bench.connect("192.0.2.2", waits_since=since)[0] for since in (5.0, 3.0, 4.0)]
        assert bench.connect("192.0.2.3")[1] is not None
        assert [client.is_closed for client in (patient, *crowd)] == [False, False, True, False]
        assert len(bench.connections) == 4

    with_bench(test, most_connections=4)


def test_a_connection_that_is_being_answered_never_makes_room() -> None:
    def test(bench: Bench) -> None:
        busy = [bench.connect("192.0.2.2")[0] for _ in range(3)]
        assert bench.connect("192.0.2.3")[1] is None
        assert not any(client.is_closed for client in busy)

    with_bench(test, most_connections=3)


def test_a_place_is_free_again_when_its_connection_is_closed_and_only_once() -> None:
    def test(bench: Bench) -> None:
        _, leave = bench.connect("192.0.2.2")
        assert leave is not None
        assert bench.connect("192.0.2.2")[1] is None
        leave()
        leave()
        assert bench.connect("192.0.2.2")[1] is not None
        assert len(bench.connections) == 1

    with_bench(test, most_per_address=1)


@pytest.mark.parametrize(
    ("proxies", "host", "is_limited"),
    [
        ((), "192.0.2.2", True),
        (("192.0.2.2",), "192.0.2.2", False),
        (("192.0.2.0/24",), "192.0.2.2", False),
        (("192.0.2.0/24",), "::ffff:192.0.2.2", False),
        (("*",), "192.0.2.2", False),
        (("192.0.2.3", "station.example.org"), "192.0.2.2", True),
        (("2001:db8::1",), "192.0.2.2", True),
        (("2001:db8::1",), "2001:db8::1", False),
    ],
)
def test_an_address_has_a_limit_unless_it_is_a_trusted_proxy(
    proxies: tuple[str, ...], host: str, is_limited: bool
) -> None:
    def test(bench: Bench) -> None:
        for _ in range(2):
            assert bench.connect(host)[1] is not None
        assert (bench.connect(host)[1] is None) is is_limited

    with_bench(test, most_per_address=2, proxies=proxies)


def test_all_addresses_of_one_customer_count_as_one() -> None:
    def test(bench: Bench) -> None:
        assert bench.connect("2001:db8:1:2::1")[1] is not None
        assert bench.connect("2001:db8:1:2:ffff::9")[1] is None
        assert bench.connect("2001:db8:1:3::1")[1] is not None

    with_bench(test, most_per_address=1)
