"""Ports for servers that must be told theirs before they listen: nothing else takes one in between.

A port found by binding to 0 and closing again is anybody's until its server listens, seconds later: other tests'
servers and the near end of any connection are given ports from that very range. These lie below it, and each test
process has a block of its own.
"""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Iterator

_FIRST, _LAST = 20000, 22768  # Linux gives out ports from 32768 on by itself; every partner lies below that, too
PARTNER = 10000
_BLOCK = 64
_blocks: dict[int, tuple[socket.socket, Iterator[int]]] = {}  # by process: a forked one claims its own


def own_port() -> int:
    """A free port of this process; so is the one whose number is higher by `PARTNER`."""
    if os.getpid() not in _blocks:
        _blocks[os.getpid()] = _reserved_block()
    _claim, ports = _blocks[os.getpid()]
    return next(port for port in itertools.islice(ports, _BLOCK) if _is_free(port) and _is_free(port + PARTNER))


def _reserved_block() -> tuple[socket.socket, Iterator[int]]:
    """A name in the abstract namespace belongs to one process at a time, per network, and ends with it."""
    for first in range(_FIRST, _LAST - _BLOCK, _BLOCK):
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            claim.bind(f"\0stationmaster-test-ports-{first}")
        except OSError:
            claim.close()
            continue
        return claim, itertools.cycle(range(first, first + _BLOCK))
    raise RuntimeError("every block of test ports belongs to a running process")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
