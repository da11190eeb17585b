"""A copy of a store that is in use: of one moment, whole, private, and never in place of something else."""

from __future__ import annotations

import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.errors import StoreError, UserError
from stationmaster.store.backup import back_up
from stationmaster.store.engine import Database
from stationmaster.store.inspection import problems_of
from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec
from tests.support.waiting import until


def test_a_store_is_copied_while_it_is_written(tmp_path: Path) -> None:
    file, copy = tmp_path / "stationmaster.db", tmp_path / "copy.db"
    over = threading.Event()
    with closing(Store(Database(f"sqlite:///{file}"))) as store:
        written: list[str] = []

        def write() -> None:
            while not over.is_set():
                store.jobs.submit(spec(f"job-{len(written)}"))
                written.append("")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            until(lambda: len(written) > 5, "some jobs are written")
            before = len(written)
            size = back_up(file, copy, overwrite=False)
            until(lambda: len(written) > before + 5, "more jobs are written")
        finally:
            over.set()
            writer.join()
    assert size == copy.stat().st_size
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert problems_of(f"sqlite:///{copy}") == []
    with closing(Store(Database(f"sqlite:///{copy}"))) as restored:
        found = restored.jobs.listed(with_ended=True, limit=100_000)
    numbers = sorted(int(job.id.removeprefix("job-")) for job in found)
    assert numbers == list(range(len(numbers)))  # those of one moment, without a gap
    assert before <= len(numbers) <= len(written)


def test_an_existing_file_is_overwritten_only_on_request(tmp_path: Path) -> None:
    file, copy = tmp_path / "stationmaster.db", tmp_path / "copy.db"
    Store(Database(f"sqlite:///{file}")).close()
    copy.write_text("mine")
    for target in (copy, tmp_path, tmp_path / "no" / "copy.db"):
        with pytest.raises(UserError):
            back_up(file, target, overwrite=False)
    with pytest.raises(UserError, match="is the store itself"):
        back_up(file, file, overwrite=True)
    assert copy.read_text() == "mine"
    back_up(file, copy, overwrite=True)
    assert problems_of(f"sqlite:///{copy}") == []


def test_a_copy_of_something_else_leaves_nothing_behind(tmp_path: Path) -> None:
    file, folder = tmp_path / "stationmaster.db", tmp_path / "backups"
    folder.mkdir()
    file.write_bytes(b"not a database" * 1000)
    with pytest.raises(StoreError, match="the copy failed"):
        back_up(file, folder / "copy.db", overwrite=False)
    assert list(folder.iterdir()) == []
