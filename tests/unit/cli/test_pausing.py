from __future__ import annotations

import _thread
import signal
import threading
import time

import pytest

from stationmaster.cli.pausing import pause


def test_a_ctrl_c_that_did_not_end_the_sleep_is_heard_soon() -> None:
    """`interrupt_main` tells Python of a Ctrl-C as the signal does, but no sleep ends by it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = threading.Timer(0.1, _thread.interrupt_main)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pause(60.0)
    finally:
        interrupting.join()
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.01])
def test_it_waits_as_long_as_it_was_asked_to(seconds: float) -> None:
    began = time.monotonic()
    pause(seconds)
    assert time.monotonic() - began >= seconds
