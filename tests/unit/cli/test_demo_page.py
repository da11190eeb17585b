"""The page beside the demo ends with it, and only for what ends it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from stationmaster.cli.demo_page import ends_in_order


@pytest.fixture(autouse=True)
def _hang_up() -> Iterator[None]:
    before = signal.getsignal(signal.SIGHUP)
    yield
    signal.signal(signal.SIGHUP, before)


def test_the_end_of_the_terminal_unwinds_it() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    with pytest.raises(SystemExit) as ended, ends_in_order():
        os.kill(os.getpid(), signal.SIGHUP)
    assert ended.value.code == 128 + signal.SIGHUP
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL


def test_what_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with ends_in_order():
        os.kill(os.getpid(), signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
