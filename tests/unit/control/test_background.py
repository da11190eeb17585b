"""The background worker's lock: one worker per home, and looking for it never gets in its way."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from stationmaster import __version__
from stationmaster.control.worker.background import WorkerLock, ensure_worker, running_worker, worker_after_reread
from stationmaster.control.worker.reloading import Idle
from stationmaster.errors import StoreError
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import spec

NOTHING_MORE = ("false",)  # the worker that is there must do


def test_a_home_without_a_worker_has_none(tmp_path: Path) -> None:
    assert running_worker(tmp_path) is None
    (tmp_path / "worker.lock").write_text(json.dumps({"pid": 1, "version": "9.9.9", "log": "x"}))
    assert running_worker(tmp_path) is None  # what a dead one wrote is only paper


def test_the_lock_is_had_once_and_tells_who_has_it(tmp_path: Path) -> None:
    first, second = WorkerLock(tmp_path), WorkerLock(tmp_path)
    assert first.take(log=tmp_path / "worker.log")
    assert not second.take(log=tmp_path / "other.log")
    found = running_worker(tmp_path)
    assert found is not None
    assert (found.version, found.log) == (__version__, tmp_path / "worker.log")
    first.release()
    assert running_worker(tmp_path) is None
    assert second.take(log=tmp_path / "other.log")
    second.release()


def test_a_lock_whose_holder_has_not_written_yet_is_held_all_the_same(tmp_path: Path) -> None:
    with (tmp_path / "worker.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        found = running_worker(tmp_path)
    assert found is not None
    assert found.pid == 0


def test_what_the_last_worker_wrote_is_never_taken_for_the_next_ones_words(tmp_path: Path) -> None:
    """A new worker was asked to make room, and the command failed after 15 s, because it was thought to be the old."""
    last = WorkerLock(tmp_path)
    assert last.take(log=tmp_path / "worker.log", is_background=True, abilities={}, settings={})
    last.release()
    assert running_worker(tmp_path) is None  # as every command looks before it starts one
    with (tmp_path / "worker.lock").open("r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # the next one, before it announces itself
        found = running_worker(tmp_path)
    assert found is not None
    assert (found.pid, found.abilities) == (0, None)


def test_somebody_who_only_looks_never_keeps_a_worker_from_starting(tmp_path: Path) -> None:
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            running_worker(tmp_path)

    lock = WorkerLock(tmp_path)
    assert lock.take(log=tmp_path / "worker.log")
    lock.release()
    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(100):
            assert lock.take(log=tmp_path / "worker.log")
            lock.release()
    finally:
        over.set()
        for looker in lookers:
            looker.join()


def test_two_that_only_look_never_take_each_other_for_a_worker(tmp_path: Path) -> None:
    dead = WorkerLock(tmp_path)
    assert dead.take(log=tmp_path / "worker.log")
    dead.release()
    with (tmp_path / "worker.lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as somebody who looks at the same time holds it
        assert running_worker(tmp_path) is None


def test_somebody_who_looks_for_long_only_delays_a_worker(tmp_path: Path) -> None:
    with (tmp_path / "worker.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        later = threading.Timer(0.8, lambda: fcntl.flock(file, fcntl.LOCK_UN))
        later.start()
        lock = WorkerLock(tmp_path)
        assert lock.take(log=tmp_path / "worker.log")
        lock.release()
        later.join()


@pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")  # that is what it is for
def test_a_worker_that_another_command_started_at_the_same_time_is_replaced_if_it_will_not_do(tmp_path: Path) -> None:
    ours = {"ssh.config_path": "1"}
    command = (sys.executable, "-c", _STARTED_BESIDE_ANOTHER, _HOLDER, json.dumps(ours))
    worker, is_new = ensure_worker(tmp_path, command, abilities={}, settings=ours)
    os.kill(worker.pid, signal.SIGTERM)
    assert is_new
    assert worker.settings == ours


def test_a_worker_that_is_leaving_is_not_relied_on_until_it_says_that_it_stays(tmp_path: Path) -> None:
    lock = WorkerLock(tmp_path)
    assert lock.take(log=tmp_path / "worker.log")
    lock.announce(is_leaving=True)
    found = running_worker(tmp_path)
    assert found is not None
    assert found.is_leaving
    later = threading.Timer(0.3, lambda: lock.announce(is_leaving=False))
    later.start()
    try:
        worker, started = ensure_worker(tmp_path, NOTHING_MORE)
        assert (worker.is_leaving, started) == (False, False)
    finally:
        later.join()
        lock.release()


@pytest.mark.parametrize(
    ("theirs", "is_background", "stays"),
    [
        ({"account default": "1"}, True, True),  # it can do the same
        ({}, False, True),  # somebody runs it in a terminal
        ({"secret HF_TOKEN": "2"}, True, True),  # it can do something that ours could not
        (None, True, True),  # it does not say
    ],
)
def test_a_worker_that_may_be_needed_as_it_is_stays(
    tmp_path: Path, theirs: dict[str, str] | None, is_background: bool, stays: bool
) -> None:
    lock = WorkerLock(tmp_path)
    assert lock.take(log=tmp_path / "worker.log", is_background=is_background, abilities=theirs)
    try:
        _, started = ensure_worker(tmp_path, NOTHING_MORE, abilities={"account default": "1"})
        assert started is not stays
    finally:
        lock.release()


@pytest.mark.parametrize(
    ("abilities", "settings", "is_background", "stays"),
    [
        ({}, {"billing.enabled": "1"}, True, True),  # it goes by the same
        ({}, {}, True, False),
        ({}, {"billing.enabled": "2"}, True, False),
        ({}, {}, False, True),  # somebody runs it in a terminal
        ({"account work": "1"}, {}, True, True),  # its machines would be out of our reach
        ({}, None, True, True),  # it does not say
    ],
)
def test_a_background_worker_with_other_settings_makes_room(
    tmp_path: Path, abilities: dict[str, str], settings: dict[str, str] | None, is_background: bool, stays: bool
) -> None:
    ours = {"billing.enabled": "1"}
    with holder(tmp_path, is_background=is_background, abilities=abilities, settings=settings) as theirs:
        if stays:
            found, started = ensure_worker(tmp_path, NOTHING_MORE, abilities={}, settings=ours)
            assert (found.pid, started) == (theirs.pid, False)
        else:
            with pytest.raises(StoreError, match="did not start"):  # which is said, now that the other one has gone
                ensure_worker(tmp_path, NOTHING_MORE, abilities={}, settings=ours)
            assert theirs.wait(timeout=150) == 0


def test_a_worker_is_given_time_to_read_a_file_that_has_just_changed(tmp_path: Path) -> None:
    lock = WorkerLock(tmp_path)
    assert lock.take(log=tmp_path / "worker.log", abilities={}, settings={})
    later = threading.Timer(0.3, lambda: lock.change(abilities={}, settings={"billing.enabled": "1"}))
    later.start()
    try:
        found = worker_after_reread(tmp_path, {"billing.enabled": "1"}, changed_at=time.time() + 60)
        assert found is not None
        assert found.settings == {"billing.enabled": "1"}
    finally:
        later.join()
        lock.release()


_HOLDER = """
import json, signal, sys
from pathlib import Path
from stationmaster.control.worker.background import WorkerLock
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
home = Path(sys.argv[1])
lock = WorkerLock(home)
assert lock.take(log=home / "worker.log", **json.loads(sys.argv[2]))
print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
"""


_STARTED_BESIDE_ANOTHER = """
import json, subprocess, sys
from pathlib import Path
holder, ours, home = sys.argv[1], json.loads(sys.argv[2]), sys.argv[4]
is_first = not Path(home, "worker.lock").exists()
about = {"is_background": True, "abilities": {}, "settings": {} if is_first else ours}
words = [sys.executable, "-c", holder, home, json.dumps(about)]
running = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
running.stdout.readline()
if not is_first:
    running.wait()
"""


@contextmanager
def holder(home: Path, **about: Any) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the home's lock and leaves when it is asked to."""
    words = [sys.executable, "-c", _HOLDER, str(home), json.dumps(about)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


@asynchronous
async def test_a_job_submitted_in_the_last_moment_keeps_the_worker(tmp_path: Path) -> None:
    store = Store(Database(f"sqlite:///{tmp_path}/store.db"))
    try:
        lock = Interrupted(tmp_path, store)
        assert lock.take(log=tmp_path / "worker.log")
        idle = Idle(store, lock, linger_seconds=0.0)
        assert not await idle.is_over()
        found = running_worker(tmp_path)
        assert found is not None
        assert not found.is_leaving
        lock.release()
    finally:
        store.close()


class Interrupted(WorkerLock):
    """The lock of a worker to which a job comes just as it says that it leaves."""

    def __init__(self, home: Path, store: Store) -> None:
        super().__init__(home)
        self._store = store

    def announce(self, *, is_leaving: bool) -> None:
        super().announce(is_leaving=is_leaving)
        if is_leaving:
            self._store.jobs.submit(spec("late"))
