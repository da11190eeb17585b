"""Archives are verified and unpacked safely; outputs are hashed once."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import tarfile
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.support.machines.trackside_bench import Bench, step
from tests.support.waiting import until


def member(name: str, content: bytes = b"x", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size = len(content) if fields.get("type", tarfile.REGTYPE) == tarfile.REGTYPE else 0
    for field, value in fields.items():
        setattr(info, field, value)
    return info, content


def symlink(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.SYMTYPE, linkname=target)


def hard_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return member(name, type=tarfile.LNKTYPE, linkname=target)


def archive(path: Path, *members: tuple[tarfile.TarInfo, bytes], mode: Literal["w", "w:gz"] = "w") -> str:
    with tarfile.open(path, mode) as tar:
        for info, content in members:
            tar.addfile(info, io.BytesIO(content))
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_an_archive_is_unpacked_and_a_repeat_does_nothing(job: Bench, mode: Literal["w", "w:gz"]) -> None:
    members = [member("a/b.txt", b"hello"), member("run.sh", mode=0o4755), member("a", type=tarfile.DIRTYPE)]
    sha256 = archive(job.root / "data.tar", *members, symlink("a/link", "b.txt"), hard_link("c", "run.sh"), mode=mode)
    first = job.call("unpack", "data.tar", "dataset", "--sha256", sha256)
    assert first == {"ok": True, "sha256": sha256, "files": 4, "already": False}
    assert (job.root / "dataset" / "a" / "link").read_text() == "hello"
    assert (job.root / "dataset" / "run.sh").stat().st_mode & 0o7100 == 0o100
    assert sorted(path.name for path in (job.root / "dataset").iterdir()) == ["a", "c", "run.sh"]
    (job.root / "dataset" / "cache").touch()
    (job.root / "data.tar").unlink()
    assert job.call("unpack", "data.tar", "dataset", "--sha256", sha256)["already"] is True
    assert (job.root / "dataset" / "cache").exists()


def test_another_archive_replaces_the_folder(job: Bench) -> None:
    one = archive(job.root / "one.tar", member("one"))
    two = archive(job.root / "two.tar", member("two"))
    job.call("unpack", "one.tar", "dataset", "--sha256", one)
    job.call("unpack", "two.tar", "dataset", "--sha256", two.upper())
    assert [path.name for path in (job.root / "dataset").iterdir()] == ["two"]
    assert sorted(path.name for path in job.root.glob("dataset*")) == ["dataset"]


def test_a_folder_that_somebody_replaced_is_unpacked_again(job: Bench) -> None:
    sha256 = archive(job.root / "one.tar", member("one"))
    job.call("unpack", "one.tar", "dataset", "--sha256", sha256)
    (job.root / "dataset").rename(job.root / "elsewhere")
    assert job.call("unpack", "one.tar", "dataset", "--sha256", sha256)["already"] is False


def test_an_archive_with_another_hash_is_not_touched(job: Bench) -> None:
    sha256 = archive(job.root / "one.tar", member("one"))
    answer = job.run("unpack", "one.tar", "dataset", "--sha256", "0" * 64)
    assert answer.returncode == 1
    assert f'"sha256": "{sha256}"' in answer.stdout.decode()
    assert not (job.root / "dataset").exists()


@pytest.mark.parametrize(
    "members",
    [
        [member("../evil")],
        [member("a/../../evil")],
        [member("/tmp/evil")],
        [symlink("out", "/etc")],
        [symlink("out", "../..")],
        [symlink("out", ".."), member("out/evil")],
        [symlink("here", "."), symlink("out", "here/..")],
        [symlink("out", ".."), symlink("out/evil", "x")],
        [hard_link("out", "../plan.json")],
        [hard_link("out", "/etc/passwd")],
        [symlink("file", "../plan.json"), hard_link("out", "file")],
        [member("same"), member("same")],
        [member("same"), symlink("same", "x")],
        [member("pipe", type=tarfile.FIFOTYPE)],
        [member("disk", type=tarfile.BLKTYPE, devmajor=8)],
    ],
)
def test_a_hostile_archive_is_refused_and_leaves_nothing(job: Bench, members: list[Any]) -> None:
    job.plan(step("train", "true"))
    before = sorted(path.name for path in job.root.iterdir())
    sha256 = archive(job.root.parent / "evil.tar", member("good"), *members)
    answer = job.run("unpack", str(job.root.parent / "evil.tar"), "dataset", "--sha256", sha256)
    assert answer.returncode == 1
    assert answer.stderr.count(b"\n") == 1
    assert sorted(path.name for path in job.root.iterdir() if path.name != ".trackside") == before
    assert sorted(path.name for path in job.root.parent.iterdir()) == ["evil.tar", "job"]


def test_what_is_no_archive_is_refused(job: Bench) -> None:
    (job.root / "x.tar").write_bytes(b"not a tar")
    sha256 = hashlib.sha256(b"not a tar").hexdigest()
    assert job.run("unpack", "x.tar", "dataset", "--sha256", sha256).returncode == 1
    assert not (job.root / "dataset").exists()


@pytest.mark.parametrize("directory", ["..", "/tmp/x", ".", ".trackside", ".trackside/steps", "a/../.."])
def test_an_archive_goes_only_into_a_folder_of_the_job(job: Bench, directory: str) -> None:
    sha256 = archive(job.root / "one.tar", member("one"))
    assert job.run("unpack", "one.tar", directory, "--sha256", sha256).returncode == 2


def test_two_calls_at_once_unpack_once(job: Bench) -> None:
    sha256 = archive(job.root / "one.tar", *(member(f"f{n}", b"x" * 1000) for n in range(200)))
    arguments = ["unpack", "one.tar", "dataset", "--sha256", sha256]
    calls = [job.popen(*arguments, stdout=subprocess.PIPE) for _ in range(3)]
    answers = [call.communicate()[0] for call in calls]
    assert [call.returncode for call in calls] == [0, 0, 0]
    assert sum(b'"already": false' in answer for answer in answers) == 1


def test_files_are_hashed_and_missing_ones_are_null(job: Bench) -> None:
    (job.root / "output").mkdir()
    (job.root / "output" / "x").write_bytes(b"abc")
    found = job.call("hash", "output/x", "output/none", "output")["files"]
    assert found["output/x"] == {"sha256": hashlib.sha256(b"abc").hexdigest(), "size": 3}
    assert found["output/none"] is None
    assert found["output"] is None


def test_the_inventory_hashes_every_output_and_reads_only_what_changed(job: Bench) -> None:
    job.plan(
        step("train", "echo a > ../output/a; echo b > ../output/b"), outputs=[{"pattern": "output/*", "kind": "c"}]
    )
    job.start()
    job.until_finished()
    first = job.call("inventory")["outputs"]
    assert [(entry["path"], entry["sha256"]) for entry in first] == [
        ("output/a", hashlib.sha256(b"a\n").hexdigest()),
        ("output/b", hashlib.sha256(b"b\n").hexdigest()),
    ]
    # Same size, time and inode: a second look takes the hash it knows, which shows that it did not read.
    path = job.root / "output" / "a"
    seen = path.stat()
    with path.open("r+b") as file:
        file.write(b"z\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert job.call("inventory")["outputs"] == first
    path.write_bytes(b"longer\n")
    assert job.call("inventory")["outputs"][0]["sha256"] == hashlib.sha256(b"longer\n").hexdigest()


def test_of_thousands_of_outputs_the_models_and_the_newest_are_listed_and_the_rest_is_counted(job: Bench) -> None:
    outputs = [{"pattern": "output/*.safetensors", "kind": "checkpoint"}, {"pattern": "output/*.png", "kind": "sample"}]
    job.plan(step("train", "true"), outputs=outputs)
    folder = job.root / "output"
    folder.mkdir(exist_ok=True)
    for number in range(2100):
        path = folder / f"{number:05d}.png"
        path.touch()
        os.utime(path, (1000 + number, 1000 + number))
    (folder / "zz.safetensors").touch()
    os.utime(folder / "zz.safetensors", (1, 1))
    inventory = job.call("inventory")
    names = [entry["path"] for entry in inventory["outputs"]]
    assert (len(names), inventory["left_out"]) == (2000, 101)
    assert names[0] == "output/00101.png", "the oldest samples are left out"
    assert names[-1] == "output/zz.safetensors", "a model is never left out for a sample"
    status = job.call("status")
    assert [entry["path"] for entry in status["outputs"]] == names
    assert status["outputs_left_out"] == 101


def test_gpus_are_told_from_the_supervisors_reading(job: Bench) -> None:
    tools = job.root.parent / "tools"
    tools.mkdir()
    program = tools / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '0, Fake GPU, 10, 20, 30'\n")
    program.chmod(0o755)
    job.environment["PATH"] = f"{tools}:{job.environment['PATH']}"
    job.plan(step("train", "exec sleep 1000"))
    job.start()
    job.until_running()
    until(lambda: (job.own / "gpu.csv").exists(), "the supervisor's reading")
    program.unlink()
    assert job.status()["gpu"] == [
        {"index": 0, "name": "Fake GPU", "memory_used_mib": 10, "memory_total_mib": 20, "utilization_percent": 30}
    ]
