"""What every face may rely on about datasets."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from stationmaster.errors import ConfigInvalid, DatasetInvalid, NotFound, UserError
from stationmaster.station.datasets import DatasetRules, parse_reference
from tests.support.jobs.dataset_pictures import good_set
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station, here_and_over_http
from tests.support.servers.hub_server import HubServer

pytestmark = here_and_over_http

RULES = DatasetRules()


@every_station
def test_a_report_counts_what_is_there_and_names_what_is_wrong(world: LocalWorld, tmp_path: Path) -> None:
    folder = good_set(tmp_path / "set")
    good = world.station.datasets.check(folder, RULES)
    assert (good.is_trainable, good.images, good.captions, good.files) == (True, 10, 10, 20)
    (folder / "landscape_001.png").write_bytes(b"")
    broken = world.station.datasets.check(folder, RULES)
    assert [(problem.code, problem.path) for problem in broken.errors] == [("image_empty", "landscape_001.png")]
    assert broken.errors[0].fix


def test_a_recipe_s_rules_are_those_that_its_trainings_are_checked_by(untouched: LocalWorld, tmp_path: Path) -> None:
    rules = untouched.station.datasets.rules_of("flux-kontext-lora@2", trigger="ohwx")
    assert (rules.control_folder, rules.trigger) == ("control", "ohwx")
    report = untouched.station.datasets.check(good_set(tmp_path), rules)
    assert not report.is_trainable, "it needs pairs"
    with pytest.raises(NotFound):
        untouched.station.datasets.rules_of("tiny-laura@1")


def test_a_repaired_copy_leaves_the_dataset_as_it_is(untouched: LocalWorld, tmp_path: Path) -> None:
    folder = good_set(tmp_path / "set")
    (folder / ".DS_Store").write_bytes(b"x")
    report = untouched.station.datasets.repair(folder, tmp_path / "fixed", RULES)
    assert report.is_trainable
    assert report.repairs
    assert len(list((tmp_path / "fixed").iterdir())) == 20
    assert (folder / ".DS_Store").exists()
    with pytest.raises(UserError, match="already exists"):
        untouched.station.datasets.repair(folder, tmp_path / "fixed", RULES)


def test_the_same_content_packs_to_the_same_bytes_and_an_archive_to_itself(
    untouched: LocalWorld, tmp_path: Path
) -> None:
    datasets = untouched.station.datasets
    first = datasets.pack(good_set(tmp_path / "set"), tmp_path / "set.tar")
    assert first.sha256 == hashlib.sha256(first.path.read_bytes()).hexdigest()
    assert (first.size, first.files) == (first.path.stat().st_size, 20)
    assert json.loads(first.manifest.read_text())["fingerprint"] == first.fingerprint
    (tmp_path / "archives").mkdir()
    again = datasets.pack(first.path, tmp_path / "archives")
    assert again.path == tmp_path / "archives" / f"{first.sha256}.tar"
    assert (again.sha256, again.fingerprint) == (first.sha256, first.fingerprint)


def test_an_archive_takes_the_place_of_another_kind_of_file_only_by_force(
    untouched: LocalWorld, tmp_path: Path
) -> None:
    folder, letter = good_set(tmp_path / "set"), tmp_path / "letter.txt"
    letter.write_text("dear")
    with pytest.raises(UserError, match="not an archive"):
        untouched.station.datasets.pack(folder, letter)
    assert letter.read_text() == "dear"
    assert untouched.station.datasets.pack(folder, letter, force=True).path == letter


UNUSABLE: list[tuple[str, Callable[[LocalWorld, Path, Path], object]]] = [
    ("repaired", lambda world, folder, bad: world.station.datasets.repair(folder, bad / "copy", RULES)),
    ("packed", lambda world, folder, bad: world.station.datasets.pack(folder, bad / "set.tar")),
    ("sampled", lambda world, _, bad: world.station.datasets.write_sample(bad / "images")),
]


@pytest.mark.parametrize("write", [write for _, write in UNUSABLE], ids=[name for name, _ in UNUSABLE])
def test_a_folder_that_cannot_be_written_to_is_a_person_s_error_with_a_hint(
    untouched: LocalWorld, tmp_path: Path, write: Callable[[LocalWorld, Path, Path], object]
) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError) as caught:
        write(untouched, good_set(tmp_path / "set"), tmp_path / "file")
    assert str(tmp_path / "file") in str(caught.value)
    assert caught.value.hint


def test_what_is_no_dataset_is_refused(untouched: LocalWorld, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        untouched.station.datasets.check(tmp_path / "nowhere", RULES)
    (tmp_path / "broken.tar").write_bytes(b"not a tar file")
    with pytest.raises(DatasetInvalid):
        untouched.station.datasets.check(tmp_path / "broken.tar", RULES)
    with pytest.raises(ConfigInvalid, match="no key is set"):
        untouched.station.datasets.check(parse_reference("s3://pictures/cats"), RULES)


@pytest.mark.parametrize("text", ["ftp://pictures/cats", "s3://", "hf://models/x/y"])
def test_an_address_that_cannot_be_a_dataset_is_refused_before_anything_is_asked(text: str) -> None:
    with pytest.raises(UserError) as caught:
        parse_reference(text)
    assert caught.value.hint


def test_a_dataset_from_elsewhere_is_fetched_once_and_its_progress_told(tmp_path: Path) -> None:
    folder = good_set(tmp_path / "set")
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    with HubServer() as hub, LocalWorld(tmp_path, STATIONMASTER_HUB__URL=hub.url) as world:
        hub.add_repo("anna/cats", files, kind="dataset")
        source = parse_reference("hf://datasets/anna/cats")
        told: list[tuple[int, int]] = []
        world.station.datasets.check(source, RULES, progress=lambda done, total: told.append((done, total)))
        size = sum(map(len, files.values()))
        assert told[-1] == (size, size)
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        told.clear()
        report = world.station.datasets.check(source, RULES, progress=lambda done, total: told.append((done, total)))
        assert (report.is_trainable, report.images) == (True, 10)
        assert all(done == total for done, total in told), "nothing was fetched again"


def test_the_sample_set_is_good_to_train_and_always_the_same(
    world: LocalWorld, local_world: LocalWorld, tmp_path: Path
) -> None:
    datasets = world.station.datasets
    own, at_home = datasets.write_sample(tmp_path / "sample"), local_world.station.datasets.write_sample()
    assert own.folder == tmp_path / "sample"
    rules = DatasetRules(trigger=own.trigger)
    assert datasets.check(own.folder, rules).problems == ()
    assert (
        datasets.pack(own.folder, tmp_path / "1.tar").sha256 == datasets.pack(at_home.folder, tmp_path / "2.tar").sha256
    )
    assert datasets.write_sample(tmp_path / "sample") == own
