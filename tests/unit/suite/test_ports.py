"""Ports of test servers: no two processes are given the same, and none that is in use."""

from __future__ import annotations

import socket
import subprocess
import sys

from tests.support.servers.ports import PARTNER, own_port

_PRINT_PORTS = "from tests.support.servers.ports import own_port; print(*(own_port() for _ in range(70)))"


def test_no_port_is_given_to_two_processes() -> None:
    own = {own_port() for _ in range(70)}

    other = subprocess.run([sys.executable, "-c", _PRINT_PORTS], capture_output=True, text=True, check=True)

    assert own.isdisjoint(int(port) for port in other.stdout.split())


def test_a_port_in_use_is_passed_over() -> None:
    in_use, beside_one_in_use = own_port(), own_port()
    with socket.create_server(("127.0.0.1", in_use)), socket.create_server(("127.0.0.1", beside_one_in_use + PARTNER)):
        again = {own_port() for _ in range(70)}

    assert again.isdisjoint({in_use, beside_one_in_use})
