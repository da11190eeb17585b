"""The log of a training that somebody else started is copied once, whatever happens to its files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trackside.root import TryFolder
from trackside.steps import foreign_log
from trackside.steps.foreign_log import LogCopy, matching_logs


@pytest.fixture
def folder(tmp_path: Path) -> TryFolder:
    (tmp_path / "try").mkdir()
    (tmp_path / "try" / "log").touch()
    (tmp_path / "logs").mkdir()
    return TryFolder(str(tmp_path / "try"))


class Logs:
    """Logs that are written one after the other, each newer than all before."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moment = 1_000_000_000

    def write(self, name: str, text: str, *, mode: str = "a") -> None:
        path = self._folder / name
        with path.open(mode) as file:
            file.write(text)
        self._moment += 10
        os.utime(path, (self._moment, self._moment))


@pytest.fixture
def logs(tmp_path: Path, folder: TryFolder) -> Logs:
    return Logs(tmp_path / "logs")


def copied(copy: LogCopy, folder: TryFolder) -> str:
    copy.copy(look_for_newer=True)
    return Path(folder.log).read_text()


def test_a_copy_goes_on_by_offset_also_in_another_process(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    pattern = f"{tmp_path}/logs/*.log"
    logs.write("a.log", "one\n")
    assert copied(LogCopy(pattern, folder), folder) == "one\n"
    logs.write("a.log", "two\n")
    assert copied(LogCopy(pattern, folder), folder) == "one\ntwo\n"


def test_a_truncated_log_is_read_from_its_new_beginning(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    copy = LogCopy(f"{tmp_path}/logs/*.log", folder)
    logs.write("a.log", "a long first line\n")
    copied(copy, folder)
    logs.write("a.log", "anew\n", mode="w")
    assert copied(copy, folder).endswith("truncated; it goes on from its new beginning\nanew\n")


def test_a_rotated_log_is_read_to_its_end_before_the_new_one(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    copy = LogCopy(f"{tmp_path}/logs/*.log", folder)
    logs.write("a.log", "one\n")
    copied(copy, folder)
    logs.write("a.log", "two\n")
    (tmp_path / "logs/a.log").rename(tmp_path / "logs/a.log.1")
    logs.write("a.log", "three\n")
    lines = copied(copy, folder).splitlines()
    assert [line for line in lines if line and not line.startswith("trackside:")] == ["one", "two", "three"]


def test_logs_that_are_written_in_turn_are_not_read_twice(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    for number in range(4):
        logs.write("a.log", f"a{number}\n")
        copied(LogCopy(f"{tmp_path}/logs/*.log", folder), folder)
        logs.write("b.log", f"b{number}\n")
        copied(LogCopy(f"{tmp_path}/logs/*.log", folder), folder)
    lines = [line for line in Path(folder.log).read_text().splitlines() if line and not line.startswith("trackside:")]
    assert lines == [f"{name}{number}" for number in range(4) for name in "ab"]


def test_of_a_long_log_the_beginning_and_the_end_are_copied(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    logs.write("a.log", "settings\n" + "a line of many\n" * 100_000 + "the last one\n")
    text = copied(LogCopy(f"{tmp_path}/logs/*.log", folder), folder)
    assert text.startswith("settings\n")
    assert text.endswith("the last one\n")
    assert "bytes of the log before the adoption are left out" in text
    assert len(text) < 350_000


def test_the_copy_starts_over_before_it_fills_the_disk(
    tmp_path: Path, folder: TryFolder, logs: Logs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_log, "_LARGEST_COPY", 100)
    copy = LogCopy(f"{tmp_path}/logs/*.log", folder)
    logs.write("a.log", "x" * 79 + "\n")
    copied(copy, folder)
    before = Path(folder.log).stat().st_ino
    logs.write("a.log", "y" * 79 + "\n")
    assert copied(copy, folder) == "y" * 79 + "\n"
    assert Path(folder.log).stat().st_ino != before


def test_links_fifos_and_folders_are_no_logs(tmp_path: Path, folder: TryFolder, logs: Logs) -> None:
    (tmp_path / "secret").write_text("hash")
    (tmp_path / "logs/a.log").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "logs/b.log")
    (tmp_path / "logs/c.log").mkdir()
    assert matching_logs(f"{tmp_path}/logs/*.log") == []
    assert copied(LogCopy(f"{tmp_path}/logs/*.log", folder), folder) == ""
