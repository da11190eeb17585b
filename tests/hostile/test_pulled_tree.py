"""`pull`: every output has a place of its own, inside the folder that was asked for, whatever a machine calls it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.errors import TransferFailed, UserError
from stationmaster.model import Checkpoint
from stationmaster.station.pulled_tree import target_paths
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted

_TWINS = f"""\
{MODEL}
for folder in a b; do
  mkdir -p {{{{ output.dir }}}}/$folder
  echo "picture of $folder" >{{{{ output.dir }}}}/$folder/info.png
done
printf x >{{{{ output.dir }}}}/a/"red$(printf '\\033')[31m.png"
"""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecipeWorld]:
    """A job that left two files of one name in two folders, and one whose name would colour a terminal."""
    pictures = '{pattern: "output/a/*.png", kind: sample}, {pattern: "output/b/*.png", kind: sample}, '
    recipe = scripted(_TWINS).replace("outputs: [", f"outputs: [{pictures}")
    with RecipeWorld(tmp_path_factory.mktemp("twins"), recipe) as world:
        world.submit(id="twins")
        world.work_until_ended("twins")
        assert world.station.jobs.view("twins").job.outcome == "COMPLETED"
        yield world


def test_files_of_one_name_in_two_folders_both_arrive(world: RecipeWorld, tmp_path: Path) -> None:
    copies = world.station.artifacts.pull("twins", tmp_path / "out")
    assert len(set(copies)) == len(copies)
    for folder in ("a", "b"):
        assert (tmp_path / "out" / "output" / folder / "info.png").read_text() == f"picture of {folder}\n"
    assert (tmp_path / "out" / "output" / "model.safetensors").is_file()


def test_the_command_tells_each_path_and_a_name_that_plays_tricks_did_not_come_home(
    world: RecipeWorld, tmp_path: Path
) -> None:
    told = stationmaster("pull", "twins", "out", environ=world.environ, cwd=tmp_path).stdout.splitlines()
    assert set(told) == {"out/output/a/info.png", "out/output/b/info.png", "out/output/model.safetensors"}
    (refused,) = world.told("twins", "files_refused")
    assert refused.payload["files"] == [r"'output/a/red\x1b[31m.png'"]
    exact = answer_of("pull", "twins", str(tmp_path / "out"), "--json", environ=world.environ)["files"]
    assert len(exact) == len(told)
    assert all(Path(name).is_file() for name in exact)


def test_a_link_below_the_folder_is_not_followed(world: RecipeWorld, tmp_path: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    out.mkdir()
    (out / "output").symlink_to(elsewhere)
    with pytest.raises(UserError, match="is a link"):
        world.station.artifacts.pull("twins", out)
    assert list(elsewhere.iterdir()) == []


def test_a_link_in_a_file_s_place_is_replaced_and_what_it_names_is_left_alone(
    world: RecipeWorld, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.write_text("mine")
    place = tmp_path / "out" / "output" / "a" / "info.png"
    place.parent.mkdir(parents=True)
    place.symlink_to(kept)
    world.station.artifacts.pull("twins", tmp_path / "out")
    assert kept.read_text() == "mine"
    assert (place.is_symlink(), place.read_text()) == (False, "picture of a\n")


def test_the_folder_itself_may_be_a_link(world: RecipeWorld, tmp_path: Path) -> None:
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "large-disk")
    world.station.artifacts.pull("twins", tmp_path / "out")
    assert (tmp_path / "large-disk" / "output" / "b" / "info.png").is_file()


def output(path: str, *, attempt: int = 1) -> Checkpoint:
    return Checkpoint(attempt=attempt, path=path, kind="sample", size=1, sha256="a", location="/x", verified_at=1.0)


@pytest.mark.parametrize("path", ["../up.png", "/etc/passwd", "output/../../up.png", "a\0b", ""])
def test_a_name_that_leads_out_is_refused(path: str) -> None:
    with pytest.raises(TransferFailed, match="nothing was copied"):
        target_paths([output("output/fine.png"), output(path)], Path("out"))


@pytest.mark.parametrize("twin", ["output//info.png", "./output/info.png", "output/./info.png"])
def test_two_spellings_of_one_name_are_refused(twin: str) -> None:
    with pytest.raises(TransferFailed, match="nothing was copied"):
        target_paths([output("output/info.png"), output(twin)], Path("out"))


def test_the_files_of_earlier_attempts_have_folders_of_their_own() -> None:
    files = [output("output/m.safetensors", attempt=attempt) for attempt in (1, 2, 3)]
    wanted = ["attempt-1/output/m.safetensors", "attempt-2/output/m.safetensors", "output/m.safetensors"]
    assert [os.fspath(place) for place in target_paths(files, Path())] == wanted
