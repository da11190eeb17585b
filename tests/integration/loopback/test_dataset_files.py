"""A small dataset is sent file by file, verified by its manifest; a large one as an archive."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.control.states.transferring.dataset_files import dataset_files, goes_as_files
from stationmaster.datasets.pack import pack_into, write_manifest
from stationmaster.errors import TransferFailed
from stationmaster.model import Access, Job, LocalAccess, RentedMachine, SshAccess, State
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.spine_values import job as a_job
from tests.support.jobs.submitting import submit
from tests.support.policies import changed

HERE = LocalAccess(root="/m", job_root="/m/jobs")
THERE = SshAccess(host="203.0.113.7", port=22, user="root", job_root="/jobs")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    return write_pictures(tmp_path / "pictures")


def packed_job(pictures: Path, tmp_path: Path, access: Access) -> Job:
    packed = pack_into(pictures, tmp_path / "datasets")
    write_manifest(packed)
    job = a_job(state=State.TRANSFERRING_DATA, machine=RentedMachine(access=access))
    dataset = replace(job.spec.dataset, archive=str(packed.path), sha256=packed.sha256, size=packed.size)
    return replace(job, spec=replace(job.spec, dataset=dataset))


def test_a_job_on_this_computer_gets_its_files_and_no_archive(tmp_path: Path, pictures: Path) -> None:
    names = sorted(path.name for path in pictures.iterdir())
    with LocalWorld(tmp_path) as world:
        request = world.request(pictures, id="job", parameters={"steps": 100_000, "seconds_per_step": 0.05})
        submit(world.station, request)
        (pictures / names[0]).write_bytes(b"changed after the job was confirmed")
        world.work_until(lambda: (world.station.jobs.find("job").progress.step or 0) > 0, what="the training")
        (folder,) = (world.settings.home / "machines").glob("*/jobs/job")
        assert sorted(path.name for path in (folder / "dataset").iterdir()) == names
        assert not (folder / "dataset.tar").exists()
        dataset = world.station.jobs.find("job").spec.dataset
        manifest = json.loads(Path(f"{dataset.archive}.manifest.json").read_text())
        for file in manifest["files"]:
            content = (folder / "dataset" / file["path"]).read_bytes()
            assert hashlib.sha256(content).hexdigest() == file["sha256"], "as it was when it was confirmed"
        assert "data_verified" in [event.kind for event in world.station.events.of_job("job")]
        assert not list((world.settings.home / "jobs" / "job").glob(".dataset-*")), "nothing stays of the transfer"


@pytest.mark.parametrize(
    ("access", "above_mb", "is_plain"), [(HERE, 0.0, True), (THERE, 16.0, True), (THERE, 0.0, False)]
)
def test_the_size_decides_except_on_this_computer(
    pictures: Path, tmp_path: Path, access: Access, above_mb: float, is_plain: bool
) -> None:
    policy = changed(transfer={"archive_above_mb": above_mb})
    job = packed_job(pictures, tmp_path, access)
    assert goes_as_files(job, policy) is is_plain
    Path(f"{job.spec.dataset.archive}.manifest.json").unlink()
    assert not goes_as_files(job, policy), "without its manifest nothing could be verified"


@asynchronous
async def test_a_damaged_archive_is_told_and_what_a_killed_worker_left_is_removed(
    pictures: Path, tmp_path: Path
) -> None:
    job = packed_job(pictures, tmp_path, HERE)
    (tmp_path / "job" / ".dataset-left").mkdir(parents=True)
    async with dataset_files(job, tmp_path / "job", below="dataset") as files:
        assert len(files) == len(list(pictures.iterdir()))
        assert len(list((tmp_path / "job").iterdir())) == 1
    assert list((tmp_path / "job").iterdir()) == []
    Path(job.spec.dataset.archive).write_bytes(b"no archive")
    with pytest.raises(TransferFailed, match="cannot be unpacked"):
        async with dataset_files(job, tmp_path / "job", below="dataset"):
            pass
    assert list((tmp_path / "job").iterdir()) == []
