"""The open connections of the service: how many there may be, and which of them make room for others."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

_IPV6_CUSTOMER = 64  # bits: a customer of a network has as many addresses as they like below these


Leave = Callable[[], None]
"""Called when a connection is closed: its place is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    head_seconds: float = 10.0  # for a TLS handshake, the head of a request, the rest of a refused body
    idle_seconds: float = 5.0  # a connection that was answered may wait this long for its next request
    unread_seconds: float = 60.0  # an answer that is not read within this time is dropped
    most_connections: int = 2000
    most_per_address: int = 0  # 0: no limit
    proxies: tuple[str, ...] = ()  # addresses and networks without a limit of their own: many users are behind each


class Client(Protocol):
    """The other end of a connection, once a request may come."""

    @property
    def waits_since(self) -> float | None:
        """When the server began to wait for this client; None while the client waits for the server."""

    def give_up(self) -> None:
        """Close the connection at once."""


class Connections:
    """Used in the event loop only. A connection has its place from the moment it is accepted, before any TLS handshake.

    When all places are taken, one that the server waits for is closed: of the address that has most of those, the one
    that has waited longest. A client that holds many half requests so makes room with its own ones.
    """

    def __init__(self, limits: ConnectionLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._places: dict[int, _Place] = {}
        self._by_address: Counter[str] = Counter()
        self._trusted = [ipaddress.ip_network(text, strict=False) for text in limits.proxies if _is_network(text)]
        self._trusts_all = "*" in limits.proxies

    def __len__(self) -> int:
        return len(self._places)

    def admit(self, connection: socket.socket, host: str) -> Leave | None:
        """Give the connection a place; None if there is none for it."""
        address = _customer(host)
        most = self._limits.most_per_address
        if most and self._by_address[address] >= most and not self._is_proxy(host):
            return None
        if len(self._places) >= self._limits.most_connections and not self._make_room():
            return None
        if (left := self._places.get(connection.fileno())) is not None:
            self._leave(left)  # a closed file's number is given out again
        place = _Place(connection=connection, number=connection.fileno(), address=address, since=self._clock())
        place.timer = asyncio.get_running_loop().call_later(self._limits.head_seconds, self._close_if_unused, place)
        self._places[place.number] = place
        self._by_address[address] += 1
        return partial(self._leave, place)

    def meet(self, number: int, client: Client) -> None:
        """The connection of this file number is ready for requests."""
        place = self._places.get(number)
        if place is not None:
            place.client = client
            place.stop_timer()

    def _make_room(self) -> bool:
        waiting = [(place, since) for place in self._places.values() if (since := place.waits_since) is not None]
        if not waiting:
            return False
        crowd = Counter(place.address for place, _ in waiting)
        chosen, _ = min(waiting, key=lambda one: (-crowd[one[0].address], one[1]))
        self._close(chosen)
        return True

    def _close_if_unused(self, place: _Place) -> None:
        if place.client is None:
            self._close(place)

    def _close(self, place: _Place) -> None:
        self._leave(place)  # its place is free now, its file as soon as the event loop comes round
        place.give_up()

    def _leave(self, place: _Place) -> None:
        if self._places.get(place.number) is not place:
            return
        del self._places[place.number]
        place.stop_timer()
        self._by_address[place.address] -= 1
        if not self._by_address[place.address]:
            del self._by_address[place.address]

    def _is_proxy(self, host: str) -> bool:
        if self._trusts_all:
            return True
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            return False
        mapped = getattr(address, "ipv4_mapped", None) or address
        return any(mapped.version == network.version and mapped in network for network in self._trusted)


@dataclass(slots=True, eq=False, kw_only=True)
class _Place:
    connection: socket.socket
    number: int
    address: str
    since: float
    client: Client | None = None
    timer: asyncio.TimerHandle | None = None

    @property
    def waits_since(self) -> float | None:
        return self.since if self.client is None else self.client.waits_since

    def give_up(self) -> None:
        if self.client is not None:
            self.client.give_up()
            return
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)  # the event loop notices, and closes it

    def stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def _is_network(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def _customer(host: str) -> str:
    """The address that connections are counted by: of an IPv6 address only what a network gives to one customer.

    >>> _customer("192.0.2.7"), _customer("2001:db8:1:2:3::9"), _customer("::ffff:192.0.2.7")
    ('192.0.2.7', '2001:db8:1:2::/64', '192.0.2.7')
    """
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, _IPV6_CUSTOMER), strict=False))
