"""A machine on which nothing can be written any more still gives up its finished model; its bill ends as ever."""

from __future__ import annotations

import errno
import itertools
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from stationmaster.files import sha256_of
from stationmaster.model import Outcome, Reason, State
from stationmaster.simulator.faults import FaultKind
from stationmaster.simulator.harness import simulator_thread
from tests.support.chaos.specs import a_tiny_dataset
from tests.support.chaos.storm_recipe import storm_job
from tests.support.chaos.storm_station import Hold, StormForge, StormStation
from tests.support.machines.small_disk import small_disk
from tests.support.vast.simulated_vast import quick_settings

Break = Callable[[Path, StormStation], None]


def fill(disk: Path, _station: StormStation) -> None:
    with (disk / "filler").open("wb", buffering=0) as file:
        for size in (2**20, 4096, 1):
            _until_no_space(partial(file.write, bytes(size)))


def take_every_inode(disk: Path, _station: StormStation) -> None:
    (disk / "files").mkdir()
    names = itertools.count()
    _until_no_space(lambda: (disk / "files" / str(next(names))).touch())


def _until_no_space(write: Callable[[], object]) -> None:
    while True:
        try:
            write()
        except OSError as problem:
            assert problem.errno == errno.ENOSPC  # noqa: PT017 (this is how the loop ends)
            return


def make_read_only(disk: Path, station: StormStation) -> None:
    def is_read_only() -> bool:
        """Refused if somebody has opened a file for writing in between, and keeps it open: then all begins again."""
        subprocess.run(["mount", "--bind", str(disk), str(disk)], check=True)
        if subprocess.run(["mount", "-o", "remount,bind,ro", str(disk)], check=False).returncode == 0:
            return True
        subprocess.run(["umount", "--lazy", str(disk)], check=True)
        return False

    station.until(is_read_only, "a disk that is only read")
    with pytest.raises(OSError) as refused:
        (disk / "probe").touch()
    assert refused.value.errno == errno.EROFS


def forbid_files(_disk: Path, station: StormStation) -> None:
    """Every write to a file fails with EFBIG, by the limit of each process."""
    (machine,) = station.alive()
    station.customer.arm(FaultKind.DISK_FULL, instance_id=int(machine["id"]))
    station.until(station.struck, "the limit")


@pytest.mark.parametrize("break_disk", [fill, take_every_inode, make_read_only, forbid_files])
def test_a_finished_model_comes_home_from_a_machine_that_can_write_nothing(
    tmp_path: Path, forge: StormForge, hold: Hold, break_disk: Break
) -> None:
    home, go = tmp_path / "simulator", tmp_path / "go"
    with (
        small_disk(home / "machines", mebibytes=128, inodes=2000) as disk,
        simulator_thread(quick_settings(home)) as url,
    ):
        station = hold(StormStation(tmp_path / "home", url, forge))
        dataset = a_tiny_dataset(tmp_path / "dataset")
        station.submit(storm_job("job-1", dataset, journal=station.journal, steps=1, pace=0.0, wait_for=go))
        station.start("worker")
        models = "*/root/opt/stationmaster/jobs/job-1/output/job-1.safetensors"
        (model,) = station.until(lambda: [*disk.glob(models)], "the model")
        sha256 = sha256_of(model)
        break_disk(disk, station)
        go.touch()
        station.until(lambda: station.job("job-1").state is State.ENDED, "the end of the job")
        job = station.job("job-1")
        assert (job.outcome, job.reason) == (Outcome.COMPLETED, Reason.FINISHED), station.story()
        assert sha256_of(Path(job.model.address or "")) == sha256
        told = [event.kind for event in station.store.events.of_job("job-1")]
        # Where only inodes are missing, files that the training leaves free may be enough for all that we write.
        assert told.count("disk_unwritable") in ((0, 1) if break_disk is take_every_inode else (1,)), station.story()
        assert "unreachable" not in told, "a machine that answers is not out of reach"
        station.check()
