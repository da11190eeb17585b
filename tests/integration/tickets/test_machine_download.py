"""The machine fetches a dataset from the bucket by signed addresses: every file with its hash, all of them or none."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.destinations.job_bucket import JobBucket
from stationmaster.errors import CommandFailed
from stationmaster.remote.host import Host
from tests.support.asynchronous_tests import asynchronous

FILES = {"one.txt": b"ohwx", "deep/two ü.png": bytes(range(256)) * 8000, "empty.txt": b""}


def an_order(job_bucket: JobBucket, files: dict[str, bytes] = FILES, **changes: Any) -> dict[str, Any]:
    listed = []
    for path, content in files.items():
        sha256 = hashlib.sha256(content).hexdigest()
        job_bucket.bucket.put(f"cats/{path}", content, sha256=sha256)
        url = job_bucket.bucket.sign_get(f"cats/{path}", seconds=60)
        listed.append({"url": url, "path": path, "size": len(content), "sha256": sha256})
    fingerprint = hashlib.sha256(repr(sorted(files)).encode()).hexdigest()
    return {"directory": "dataset", "fingerprint": fingerprint, "files": listed, **changes}


def content_of(host: Host) -> dict[str, bytes]:
    folder = Path(host.path("dataset"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@asynchronous
async def test_all_files_are_there_and_are_not_fetched_again(open_job_bucket: Any, old_host: Host) -> None:
    host = old_host
    order = an_order(open_job_bucket())
    assert await host.carry_out("download", order) == {"ok": True, "files": 3, "fetched": 3}
    assert content_of(host) == FILES
    assert await host.carry_out("download", order) == {"ok": True, "files": 3, "fetched": 0}
    again = await host.unpack("dataset.tar", "dataset", order["fingerprint"])
    assert again.already  # the archive that holds the same is not missed


@asynchronous
async def test_what_came_before_the_line_was_cut_is_used(open_job_bucket: Any, host: Host) -> None:
    order = an_order(open_job_bucket())
    fetching = Path(host.path("dataset.fetching"))
    (fetching / "deep").mkdir(parents=True)
    (fetching / "one.txt").write_bytes(b"ohwx")
    (fetching / "deep" / "two ü.png.part").write_bytes(FILES["deep/two ü.png"][:100_000])
    (fetching / "of an earlier order").write_bytes(b"x")
    assert await host.carry_out("download", order) == {"ok": True, "files": 3, "fetched": 2}
    assert content_of(host) == FILES


@asynchronous
async def test_bytes_without_the_right_hash_leave_the_old_dataset_as_it_was(open_job_bucket: Any, host: Host) -> None:
    job_bucket = open_job_bucket()
    await host.carry_out("download", an_order(job_bucket))
    order = an_order(job_bucket, {"one.txt": b"new!"})
    job_bucket.bucket.put("cats/one.txt", b"BAD!", sha256=hashlib.sha256(b"BAD!").hexdigest())
    answer = await host.carry_out("download", order)
    assert answer["ok"] is False
    assert "one.txt" in answer["problem"]
    assert "X-Amz" not in str(answer)
    assert content_of(host) == FILES


@asynchronous
async def test_an_object_that_is_gone_is_told(open_job_bucket: Any, host: Host) -> None:
    job_bucket = open_job_bucket()
    order = an_order(job_bucket)
    job_bucket.bucket.delete("cats/one.txt")
    answer = await host.carry_out("download", order)
    assert answer == {"ok": False, "problem": "one.txt: the bucket answered 404"}
    assert not Path(host.path("dataset")).exists()


@asynchronous
async def test_nothing_is_written_outside_the_jobs_folder(open_job_bucket: Any, host: Host) -> None:
    job_bucket = open_job_bucket()
    order = an_order(job_bucket, {"one.txt": b"ohwx"})
    hostile = [{**order["files"][0], "path": path} for path in ("../escape", "/tmp/escape", "a/../../escape")]
    for changes in ({"files": [file]} for file in hostile):
        with pytest.raises(CommandFailed) as told:
            await host.carry_out("download", {**order, **changes})
        assert "X-Amz" not in str(told.value)
    for directory in ("../elsewhere", ".trackside", "."):
        with pytest.raises(CommandFailed):
            await host.carry_out("download", {**order, "directory": directory})
    assert not list(Path(host.root).parent.rglob("escape"))
