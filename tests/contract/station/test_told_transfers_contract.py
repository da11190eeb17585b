"""Who copies, downloads or packs can show how far that is: the bytes only grow, and end with all of them."""

from __future__ import annotations

from pathlib import Path

from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import here_and_over_http

pytestmark = here_and_over_http


class Told(list[tuple[int, int]]):
    def __call__(self, done: int, total: int) -> None:
        self.append((done, total))

    def assert_complete(self) -> None:
        assert self
        done, totals = [each for each, _ in self], {total for _, total in self}
        assert done == sorted(done)
        assert totals == {done[-1]}


def test_the_copy_of_a_jobs_files_is_told(finished: LocalWorld, tmp_path: Path) -> None:
    told = Told()
    copies = finished.station.artifacts.pull("done", tmp_path, progress=told)
    told.assert_complete()
    assert told[-1][0] == sum(copy.stat().st_size for copy in copies)


def test_the_download_of_a_model_is_told(finished: LocalWorld, tmp_path: Path) -> None:
    told = Told()
    copy = finished.station.models.download("done", tmp_path, progress=told)
    told.assert_complete()
    assert told[-1][0] == copy.stat().st_size


def test_the_packing_of_a_dataset_is_told(world: LocalWorld, pictures: Path, tmp_path: Path) -> None:
    packing, proposed = Told(), Told()
    world.station.datasets.pack(pictures, tmp_path / "set.tar", packing=packing)
    world.station.proposals.propose(world.request(pictures, id="mine"), packing=proposed)
    packing.assert_complete()
    proposed.assert_complete()
    assert packing[-1] == proposed[-1]
