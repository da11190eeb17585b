"""The archive that goes to every machine."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stationmaster.remote.pyz import build_pyz, pyz_bytes
from tests.support.machines.trackside_bench import Bench, bench, build_source_pyz, step

_SHA256 = "import hashlib; from stationmaster.remote.pyz import *; print(hashlib.sha256(pyz_bytes()).hexdigest())"


def test_it_is_written_once(tmp_path: Path) -> None:
    first = build_pyz(tmp_path / "new" / "folder")
    written_at = first.stat().st_mtime_ns
    assert build_pyz(tmp_path / "new" / "folder") == first
    assert first.stat().st_mtime_ns == written_at
    assert first.read_bytes() == pyz_bytes()
    assert [path.name for path in first.parent.iterdir()] == [first.name]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_same_sources_give_the_same_bytes_in_every_process(seed: str) -> None:
    """Workers on several computers look after one job, and none is to send it another archive for no reason."""
    said = subprocess.run(
        [sys.executable, "-O", "-c", _SHA256],
        env={"PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
        text=True,
    )
    assert said.stdout.strip() == hashlib.sha256(pyz_bytes()).hexdigest()


def test_nothing_of_this_computer_is_in_it() -> None:
    assert str(Path(__file__).parents[3]).encode() not in pyz_bytes()


def test_it_runs_without_the_package_being_installed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    pyz = build_pyz(tmp_path)
    answer = subprocess.run(
        [sys.executable, "-I", "-S", pyz, "--root", tmp_path, "hash", "file"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" in answer.stdout


def test_compiled_code_for_this_python_is_used_as_it_is(tmp_path: Path) -> None:
    with bench(tmp_path / "job", pyz=build_pyz(tmp_path)) as job:
        assert modules_come_from(job) == "the archive"
        assert not [*job.own.glob("code-*")]


def test_modules_that_must_be_compiled_are_compiled_once_per_job(tmp_path: Path) -> None:
    with bench(tmp_path / "job", pyz=build_source_pyz(tmp_path)) as job:
        assert modules_come_from(job) == "files"
        (code,) = job.own.glob("code-*")
        assert [*code.glob("trackside/report/__pycache__/status.*.pyc")]


def test_compiled_code_for_another_python_is_passed_over(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign.pyz"
    with zipfile.ZipFile(build_pyz(tmp_path)) as ours, zipfile.ZipFile(foreign, "w") as theirs:
        for name in ours.namelist():
            data = ours.read(name)
            theirs.writestr(name, bytes(4) + data[4:] if name.endswith(".pyc") else data)
    with bench(tmp_path / "job", pyz=foreign) as job:
        assert modules_come_from(job) == "files"
        unpacked = job.own.glob("code-*/trackside/**/*.pyc")
        assert {path.parent.name for path in unpacked} == {"__pycache__"}


def modules_come_from(job: Bench) -> str:
    """Run a job of one step, and see from where the next call imports."""
    job.plan(step("pass", "true"))
    job.start()
    assert job.until_finished()["finished"]["result"] == "done"
    talkative = [job.command[0], "-v", *job.command[1:], "--root", str(job.root), "status"]
    told = subprocess.run(talkative, capture_output=True, check=True, text=True).stderr
    (line,) = (line for line in told.splitlines() if line.startswith("import 'trackside.report.status'"))
    return "the archive" if "zipimporter" in line else "files"
