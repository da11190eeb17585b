"""Archives that stay on the machine for later jobs."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import trackside
from trackside.errors import Misuse
from trackside.root import Root
from trackside.transfer.cache import keep, take
from trackside.verbs import run_verb

NOW = 2_000_000_000.0
DAY = 86400.0


def job(folder: Path, name: str, archive: bytes | None = None) -> Root:
    (folder / "jobs" / name).mkdir(parents=True, exist_ok=True)
    if archive is not None:
        (folder / "jobs" / name / "dataset.tar").write_bytes(archive)
    return Root(str(folder / "jobs" / name))


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def kept(folder: Path, name: str, data: bytes, *, used_at: float = NOW) -> str:
    """The hash of an archive that an earlier job left."""
    root = job(folder, name, data)
    assert keep(root, sha256_of(data), "dataset.tar", most_bytes=10**9, most_seconds=DAY, now=used_at)
    return sha256_of(data)


def cached(folder: Path) -> set[str]:
    return {path.name for path in (folder / "jobs" / ".cache").iterdir() if not path.name.startswith(".")}


def keep_another(folder: Path, data: bytes, *, most_bytes: int) -> bool:
    root = job(folder, "another", data)
    return keep(root, sha256_of(data), "dataset.tar", most_bytes=most_bytes, most_seconds=DAY, now=NOW)


def test_a_later_job_takes_what_an_earlier_one_left_without_using_room(tmp_path: Path) -> None:
    first, second = job(tmp_path, "first", b"archive"), job(tmp_path, "second")
    sha256 = sha256_of(b"archive")
    keep(first, sha256, "dataset.tar", most_bytes=100, most_seconds=DAY, now=NOW)
    assert take(second, sha256, "dataset.tar", room_bytes=0, now=NOW)
    assert (tmp_path / "jobs/second/dataset.tar").samefile(tmp_path / "jobs/first/dataset.tar")


def test_the_end_of_one_job_takes_nothing_from_the_others(tmp_path: Path) -> None:
    sha256 = kept(tmp_path, "first", b"archive")
    second = job(tmp_path, "second")
    assert take(second, sha256, "dataset.tar", room_bytes=0, now=NOW)
    (tmp_path / "jobs/first/dataset.tar").unlink()
    (tmp_path / "jobs/.cache" / sha256).unlink()
    assert (tmp_path / "jobs/second/dataset.tar").read_bytes() == b"archive"


def test_what_was_verified_replaces_what_was_damaged(tmp_path: Path) -> None:
    sha256 = kept(tmp_path, "first", b"archive")
    (tmp_path / "jobs/.cache" / sha256).write_bytes(b"damaged")
    second = job(tmp_path, "second", b"archive")
    keep(second, sha256, "dataset.tar", most_bytes=100, most_seconds=DAY, now=NOW)
    assert (tmp_path / "jobs/.cache" / sha256).read_bytes() == b"archive"


def test_keeping_what_is_kept_changes_nothing(tmp_path: Path) -> None:
    root = job(tmp_path, "first", b"archive")
    for _ in range(2):
        keep(root, sha256_of(b"archive"), "dataset.tar", most_bytes=100, most_seconds=DAY, now=NOW)
    assert [path.name for path in (tmp_path / "jobs/.cache").iterdir() if path.name != ".turn"] == [
        sha256_of(b"archive")
    ]


def test_those_used_longest_ago_make_way_when_the_size_is_reached(tmp_path: Path) -> None:
    data = [bytes([number]) * 10 for number in range(4)]
    for number, each in enumerate(data[:3]):
        kept(tmp_path, f"job-{number}", each, used_at=NOW - 1000 + number)
    assert keep_another(tmp_path, data[3], most_bytes=25)
    assert cached(tmp_path) == {sha256_of(data[3]), sha256_of(data[2])}


def test_one_that_nobody_used_for_long_is_removed(tmp_path: Path) -> None:
    kept(tmp_path, "old", b"old", used_at=NOW - 2 * DAY)
    recent = kept(tmp_path, "recent", b"recent", used_at=NOW - DAY / 2)
    keep_another(tmp_path, b"another", most_bytes=10**9)
    assert cached(tmp_path) == {recent, sha256_of(b"another")}


def test_one_that_is_too_big_is_not_kept(tmp_path: Path) -> None:
    assert not keep_another(tmp_path, b"x" * 100, most_bytes=99)
    assert cached(tmp_path) == set()


def test_room_is_made_for_a_job_that_needs_it(tmp_path: Path) -> None:
    for number in range(3):
        kept(tmp_path, f"job-{number}", bytes([number]))
    wanted = sha256_of(b"\0")
    taking = job(tmp_path, "taking")
    assert take(taking, wanted, "dataset.tar", room_bytes=2**60, now=NOW)
    assert cached(tmp_path) == {wanted}


def test_one_that_was_taken_lately_is_not_old(tmp_path: Path) -> None:
    sha256 = kept(tmp_path, "old", b"old", used_at=NOW - 2 * DAY)
    take(job(tmp_path, "taking"), sha256, "dataset.tar", room_bytes=0, now=NOW)
    keep_another(tmp_path, b"another", most_bytes=10**9)
    assert sha256 in cached(tmp_path)


def test_nothing_else_beside_the_jobs_is_ever_removed(tmp_path: Path) -> None:
    kept(tmp_path, "first", b"archive")
    (tmp_path / "jobs/.cache/a person's note").write_text("mine")
    keep_another(tmp_path, b"another", most_bytes=0)
    assert (tmp_path / "jobs/.cache/a person's note").read_text() == "mine"
    assert (tmp_path / "jobs/first/dataset.tar").exists()


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "0" * 63, "G" * 64])
def test_only_a_hash_names_an_archive(tmp_path: Path, name: str) -> None:
    with pytest.raises(Misuse, match="not a SHA-256"):
        take(job(tmp_path, "first"), name, "dataset.tar", room_bytes=0, now=NOW)


def test_the_verbs_answer_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root, other = job(tmp_path, "first", b"archive"), job(tmp_path, "second")
    sha256 = sha256_of(b"archive")
    bounds = ("--most-bytes", "100", "--most-age", "3600")
    assert run_verb(["--root", root.path, "keep", "dataset.tar", "--sha256", sha256, *bounds]) == 0
    assert run_verb(["--root", other.path, "take", "dataset.tar", "--sha256", sha256, "--room", "5"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [{"kept": True}, {"taken": True}]


def test_jobs_that_keep_and_take_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    data = b"archive" * 100_000
    sha256 = kept(tmp_path, "first", data)
    environment = {"PYTHONPATH": str(Path(trackside.__file__).parent.parent)}
    verbs = {
        "take": ("--room", "0"),
        "keep": ("--most-bytes", "100000000", "--most-age", "3600"),
    }
    running = []
    for number, verb in enumerate(("keep", "take") * 3):
        root = job(tmp_path, f"job-{number}", data if verb == "keep" else None)
        argv = [sys.executable, "-m", "trackside", "--root", root.path, verb, "dataset.tar", "--sha256", sha256]
        running.append(subprocess.Popen([*argv, *verbs[verb]], env=environment, stdout=subprocess.PIPE))
    answers = [json.loads(process.communicate(timeout=150)[0]) for process in running]
    assert answers == [{"kept": True}, {"taken": True}] * 3
    for number in range(6):
        assert sha256_of((tmp_path / "jobs" / f"job-{number}" / "dataset.tar").read_bytes()) == sha256
    assert cached(tmp_path) == {sha256}
