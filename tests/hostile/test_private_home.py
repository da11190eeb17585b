"""Other users of this computer read nothing in the home, whatever it was before and whoever made it."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.control.wiring.open_store import open_store
from tests.support.capabilities import require
from tests.support.commands.cli_runs import QUICK, Home, Ran, ran_cleanly
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server, stationmaster
from tests.support.jobs.local_world import write_pictures
from tests.support.waiting import until

SERVICES = [("worker",), ("up", "--port", "0"), ("serve", "--port", "0"), ("sweeper",), ("simulator", "--port", "0")]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


def run(home: Home, *words: str, umask: int = 0o022) -> Ran:
    return ran_cleanly(stationmaster(*words, environ=home.environ, cwd=home.folder, umask=umask))


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def test_a_home_that_others_could_read_is_private_after_any_command(home: Home) -> None:
    assert run(home, "jobs").code == 0
    store = home.path / "stationmaster.db"
    files = [home.path / name for name in ("worker.log", "worker.env", "serve.token", "config.toml")]
    for file in files:
        file.touch()
    with closing(sqlite3.connect(store)) as connection:  # as a worker has it open, with its -wal and -shm
        connection.execute("BEGIN IMMEDIATE")
        files += [store, home.path / "stationmaster.db-wal", home.path / "stationmaster.db-shm"]
        for file in files:
            file.chmod(0o644)
        home.path.chmod(0o755)
        connection.rollback()
        assert run(home, "jobs").code == 0
        assert {file.name: oct(mode(file)) for file in files} == {file.name: "0o600" for file in files}
    assert mode(home.path) == 0o700


def test_files_in_the_home_that_are_not_ours_keep_their_modes(home: Home) -> None:
    home.path.mkdir()
    script = home.path / "backup.sh"
    script.touch()
    script.chmod(0o755)
    outside = home.folder / "shared.log"
    outside.touch()
    outside.chmod(0o644)
    (home.path / "worker.log").symlink_to(outside)
    assert run(home, "jobs").code == 0
    assert (mode(script), mode(outside)) == (0o755, 0o644)


def test_everything_that_a_training_leaves_in_the_home_is_private(home: Home) -> None:
    pictures = write_pictures(home.folder / "pictures")
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "a", "--yes", "--watch", *QUICK)
    assert run(home, *words).code == 0
    until(lambda: home.worker_pid() is None, what="the worker has left")
    places = [home.path, *home.path.iterdir(), *(home.path / "jobs").rglob("*")]
    open_ones = [str(path) for path in places if not path.is_symlink() and mode(path) & 0o077]
    assert open_ones == []
    _pulled_files_are_as_the_person_s_umask_says(home)


def _pulled_files_are_as_the_person_s_umask_says(home: Home) -> None:
    for umask, file_mode, folder_mode in ((0o022, 0o644, 0o755), (0o027, 0o640, 0o750), (0o077, 0o600, 0o700)):
        target = home.folder / f"pulled-{umask:o}"
        assert run(home, "pull", "a", str(target), umask=umask).code == 0
        found = list(target.rglob("*"))
        assert {mode(path) for path in found if path.is_file()} == {file_mode}
        assert {mode(path) for path in (target, *found) if path.is_dir()} == {folder_mode}
        exported = home.folder / f"run-{umask:o}.csv"
        assert run(home, "metrics", "a", "--export", str(exported), umask=umask).code == 0
        assert mode(exported) == file_mode


def test_what_is_written_for_a_person_elsewhere_has_the_modes_of_their_umask(home: Home) -> None:
    assert run(home, "recipes", "new", str(home.folder / "mine")).code == 0
    assert {mode(path) for path in (home.folder / "mine").iterdir()} == {0o644}
    pictures = write_pictures(home.folder / "pictures")
    assert run(home, "dataset", "pack", str(pictures), str(home.folder / "cats.tar"), umask=0o027).code == 0
    assert mode(home.folder / "cats.tar") == 0o640


@pytest.mark.parametrize("words", SERVICES)
def test_every_process_of_ours_writes_for_its_user_only(home: Home, words: tuple[str, ...]) -> None:
    home.path.mkdir()
    home.path.chmod(0o755)
    with command_server().started(*words, environ=home.environ, cwd=home.folder, umask=0o022) as service:
        until(lambda: mode(home.path) == 0o700, what="the home is private")
        assert _umask(service.pid) == "0077"
        assert [str(path) for path in home.path.iterdir() if mode(path) & 0o077] == []
        os.kill(service.pid, signal.SIGTERM)
        service.wait(PATIENCE_SECONDS)


def test_a_program_of_the_person_s_own_keeps_its_umask_and_leaves_a_private_store(home: Home) -> None:
    before = os.umask(0o022)
    try:
        home.path.mkdir()
        settings = load_settings({"STATIONMASTER_HOME": str(home.path)}, folder=home.folder)
        with closing(open_store(settings)):
            assert {oct(mode(path)) for path in home.path.iterdir()} == {"0o600"}
        assert mode(home.path) == 0o700
    finally:
        assert os.umask(before) == 0o022


def test_a_folder_of_all_users_stays_theirs_and_doctor_objects(home: Home) -> None:
    home.path.mkdir()
    home.path.chmod(0o1777)
    ran = run(home, "doctor")
    assert (ran.code, mode(home.path)) == (1, 0o1777)
    assert re.search(
        r"^fail +home +other users have rights to the home\n +hint: choose a folder of your own", ran.out, re.M
    )
    assert mode(home.path / "stationmaster.db") == 0o600


def test_doctor_says_what_it_found(home: Home) -> None:
    home.path.mkdir()
    home.path.chmod(0o755)
    assert re.search(r"^ok +home +private now; other users had rights to it before$", run(home, "doctor").out, re.M)
    assert re.search(r"^ok +home +private$", run(home, "doctor").out, re.M)


def test_what_belongs_to_another_user_is_left_alone_and_doctor_names_it(home: Home) -> None:
    require("another user")
    assert run(home, "jobs").code == 0
    log = home.path / "worker.log"
    log.touch()
    log.chmod(0o644)
    os.chown(log, 4321, -1)
    ran = run(home, "doctor")
    assert (ran.code, mode(log)) == (1, 0o644)
    assert re.search(r"^fail +home +other users have rights to worker.log$", ran.out, re.M)


def _umask(pid: int) -> str:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(line.split()[1] for line in lines if line.startswith("Umask:"))
