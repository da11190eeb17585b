"""Datasets at home go when nobody needs them, and never while somebody may."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.control.periodic.dataset_cleanup import forget_dataset, remove_leftovers
from stationmaster.datasets.pack import Packed, pack_into, write_manifest
from stationmaster.datasets.sources.cache import fetch_into_cache, remove_unused_datasets
from stationmaster.datasets.sources.remote_dataset import RemoteFile
from stationmaster.datasets.stale_archives import remove_if_stale
from stationmaster.model import DatasetRef, Outcome, State
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import spec
from tests.support.waiting import until

DAY = 86_400.0
MONTH = 30 * DAY


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db"))) as opened:
        yield opened


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def packed(home: Path, caption: str = "a cat", *, age: float = 0.0) -> Packed:
    folder = home.parent / "pictures"
    folder.mkdir(exist_ok=True)
    (folder / "one.txt").write_text(caption)
    done = pack_into(folder, home / "datasets")
    for path in (done.path, write_manifest(done)):
        make_older(path, age)
    return done


def make_older(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def ref(archive: Packed) -> DatasetRef:
    return DatasetRef(source="/pictures", archive=str(archive.path), sha256=archive.sha256, size=archive.size, images=1)


def submit(store: Store, job_id: str, archive: Packed, *, ended: bool = True) -> None:
    store.jobs.submit(spec(job_id, dataset=ref(archive)))
    if ended:
        (lease,) = store.leases.claim("w", limit=1, seconds=20)
        over = replace(lease.job, state=State.ENDED, outcome=Outcome.COMPLETED, ended_at=store.now())
        store.leases.settle(lease, Write(job=over, due_in=None))


def left(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "datasets").iterdir())


def test_the_last_job_takes_its_dataset_with_it(home: Path, store: Store) -> None:
    archive, other = packed(home, age=DAY), packed(home, "a dog", age=DAY)
    for job_id in ("a", "b"):
        submit(store, job_id, archive)
    store.jobs.remove("a")
    forget_dataset(ref(archive), home, store)
    assert len(left(home)) == 4, "job b was trained on it, and may be tried again"
    store.jobs.remove("b")
    forget_dataset(ref(archive), home, store)
    assert left(home) == [other.path.name, f"{other.path.name}.manifest.json"]
    forget_dataset(ref(archive), home, store)  # as often as one likes


def test_a_dataset_goes_with_its_job_however_young_it_is(home: Path, store: Store) -> None:
    forget_dataset(ref(packed(home, age=1.0)), home, store)
    assert left(home) == []


def test_only_what_was_packed_into_the_home_is_removed(home: Path, store: Store, tmp_path: Path) -> None:
    mine = tmp_path / "mine.tar"
    packed(home, age=DAY).path.rename(mine)
    forget_dataset(replace(ref(packed(home, age=DAY)), archive=str(mine)), home, store)
    (home / "datasets" / "notes.tar").write_text("a person's own")
    make_older(home / "datasets" / "notes.tar", 2 * MONTH)
    remove_leftovers(home, store, unused_seconds=MONTH)
    assert mine.is_file()
    assert left(home) == ["notes.tar"]


def test_what_nobody_used_for_long_goes(home: Path, store: Store) -> None:
    old, young = packed(home, age=31 * DAY), packed(home, "a dog", age=29 * DAY)
    broken_off = home / "datasets" / ".0123456789abcdef.partial"
    broken_off.write_bytes(b"half")
    make_older(broken_off, 31 * DAY)
    gone = remove_leftovers(home, store, unused_seconds=MONTH)
    assert {path.name for path in gone} == {old.path.name, f"{old.path.name}.manifest.json"}
    assert left(home) == [young.path.name, f"{young.path.name}.manifest.json"]


def test_what_a_job_or_its_retry_needs_stays_however_old_it_is(home: Path, store: Store, tmp_path: Path) -> None:
    running, ended = packed(home, age=99 * DAY), packed(home, "a dog", age=99 * DAY)
    submit(store, "ended", ended)
    submit(store, "running", running, ended=False)
    assert remove_leftovers(home, store, unused_seconds=MONTH) == []
    with closing(Store(Database(f"sqlite:///{tmp_path}/store.db", clock_offset=31 * DAY))) as later:
        remove_leftovers(home, later, unused_seconds=MONTH)
    assert left(home) == [running.path.name, f"{running.path.name}.manifest.json"]


def test_a_time_of_nothing_still_leaves_what_is_being_submitted(home: Path, store: Store) -> None:
    archive = packed(home, age=60.0)
    assert remove_leftovers(home, store, unused_seconds=0.0) == []
    assert archive.path.is_file()


def test_a_dataset_that_is_packed_anew_while_it_goes_stays(home: Path) -> None:
    archive = packed(home, age=DAY)
    asked: list[str] = []

    def packs_anew(sha256: str) -> bool:
        if not asked:
            packed(home)
        asked.append(sha256)
        return False

    assert not remove_if_stale(archive.path, archive.sha256, seconds=600, is_wanted=packs_anew)
    assert archive.path.is_file()


@pytest.mark.parametrize("is_there_again", [False, True])
def test_a_dataset_that_is_wanted_while_it_goes_comes_back(home: Path, is_there_again: bool) -> None:
    archive = packed(home, age=DAY)
    answers = iter((False, True))

    def is_wanted(_sha256: str) -> bool:
        answer = next(answers)
        if answer and is_there_again:
            packed(home, age=5.0)
        return answer

    assert not remove_if_stale(archive.path, archive.sha256, seconds=600, is_wanted=is_wanted)
    assert left(home) == [archive.path.name, f"{archive.path.name}.manifest.json"]


class OneFile:
    """A dataset elsewhere, of one file."""

    content = b"a caption"

    def listed(self) -> list[RemoteFile]:
        return [RemoteFile(path="one.txt", key="one.txt", size=len(self.content), version="1")]

    def read(self, _file: RemoteFile, *, offset: int) -> Iterator[bytes]:
        yield self.content[offset:]

    def digest_is_of_content(self, _file: RemoteFile) -> bool:
        return False


def fetch(home: Path) -> Path:
    return fetch_into_cache(OneFile(), "s3://pictures/cats", home / "datasets" / "sources")


def test_a_fetched_dataset_stays_as_long_as_it_is_asked_for(home: Path, store: Store) -> None:
    files = fetch(home)
    make_older(files.parent / "index.json", 31 * DAY)
    fetch(home)
    assert remove_leftovers(home, store, unused_seconds=MONTH) == []
    make_older(files.parent / "index.json", 31 * DAY)
    assert remove_leftovers(home, store, unused_seconds=MONTH) == [files.parent]
    assert list((home / "datasets" / "sources").iterdir()) == []
    assert (fetch(home) / "one.txt").read_bytes() == OneFile.content


def test_a_dataset_that_is_being_fetched_is_not_removed(home: Path) -> None:
    place = fetch(home).parent
    make_older(place / "index.json", 31 * DAY)
    with (place / ".lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert remove_unused_datasets(place.parent, seconds=MONTH) == []
    assert remove_unused_datasets(place.parent, seconds=MONTH) == [place]


def is_waited_for(descriptor: int) -> bool:
    """Whether somebody waits for a lock on this file, by the kernel's own word."""
    inode = os.fstat(descriptor).st_ino
    return any("->" in line and f":{inode} " in line for line in Path("/proc/locks").read_text().splitlines())


def test_who_waited_for_a_dataset_that_was_removed_fetches_it_anew(home: Path) -> None:
    place = fetch(home).parent
    found: list[Path] = []
    with (place / ".lock").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        waiting = threading.Thread(target=lambda: found.append(fetch(home)))
        waiting.start()
        until(lambda: is_waited_for(lock.fileno()))
        place.rename(place.with_name("removed"))
    waiting.join(20)
    assert (found[0] / "one.txt").read_bytes() == OneFile.content
