from __future__ import annotations

from pathlib import Path

import pytest

from stationmaster.datasets.rules import CaptionRule, DatasetRules
from stationmaster.datasets.validate import check
from tests.support.jobs.dataset_pictures import good_set

REQUIRED = DatasetRules(captions=CaptionRule.REQUIRED, trigger="smland")
OPTIONAL = DatasetRules(captions=CaptionRule.OPTIONAL, trigger="smland")


def found(folder: Path, rules: DatasetRules) -> set[tuple[str, str, str]]:
    return {(problem.severity.value, problem.code, problem.path) for problem in check(folder, rules).problems}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return good_set(tmp_path)


def test_a_missing_caption_stops_only_where_captions_are_required(folder: Path) -> None:
    (folder / "landscape_004.txt").unlink()
    assert found(folder, REQUIRED) == {("error", "caption_missing", "landscape_004.png")}
    assert found(folder, OPTIONAL) == {("warning", "caption_missing", "landscape_004.png")}
    assert {code for _, code, _ in found(folder, DatasetRules(captions=CaptionRule.NONE))} == {"caption_unused"}


def test_no_caption_at_all_is_said_once(folder: Path) -> None:
    for caption in folder.glob("*.txt"):
        caption.unlink()
    assert found(folder, OPTIONAL) == {("warning", "captions_missing", "")}
    assert len(check(folder, REQUIRED).errors) == 10


def test_an_empty_caption_is_found(folder: Path) -> None:
    (folder / "landscape_004.txt").write_text(" \n\t")
    assert found(folder, REQUIRED) == {("error", "caption_empty", "landscape_004.txt")}
    assert found(folder, OPTIONAL) == {("warning", "caption_empty", "landscape_004.txt")}


def test_a_caption_without_image_is_an_error(folder: Path) -> None:
    (folder / "readme.txt").write_text("smland, about this set")
    assert found(folder, OPTIONAL) == {("error", "caption_without_image", "readme.txt")}


def test_a_caption_named_after_the_whole_image_name_gets_the_right_advice(folder: Path) -> None:
    (folder / "landscape_004.txt").rename(folder / "landscape_004.png.txt")
    problem = next(problem for problem in check(folder, OPTIONAL).problems if problem.code == "caption_without_image")
    assert problem.fix == "rename it to landscape_004.txt"


def test_a_caption_beyond_the_limit_is_a_warning(folder: Path) -> None:
    (folder / "landscape_004.txt").write_text("smland, " + "very " * 400 + "long")
    assert found(folder, REQUIRED) == {("warning", "caption_too_long", "landscape_004.txt")}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("smland, café".encode("latin-1"), "caption_not_utf8"),
        ("smland".encode("utf-16"), "caption_not_utf8"),
        (b"smland \0 x", "caption_not_utf8"),
        (b"smland " * 20_000, "caption_too_large"),
    ],
)
def test_what_is_no_text_is_an_error(folder: Path, content: bytes, code: str) -> None:
    (folder / "landscape_004.txt").write_bytes(content)
    assert found(folder, OPTIONAL) == {("error", code, "landscape_004.txt")}


def test_repeated_captions_are_one_warning(folder: Path) -> None:
    for number in (2, 5, 7):
        (folder / f"landscape_{number:03d}.txt").write_text("smland, a  Picture")
    (problem,) = check(folder, REQUIRED).problems
    assert (problem.code, problem.path) == ("caption_duplicate", "landscape_002.txt")
    assert problem.message.startswith("3 images")
    assert "landscape_007.txt" in problem.message


def test_a_caption_without_the_trigger_is_found(folder: Path) -> None:
    (folder / "landscape_004.txt").write_text("a house in the smlandscape")
    assert found(folder, REQUIRED) == {("warning", "trigger_missing", "landscape_004.txt")}


@pytest.mark.parametrize("caption", ["SMLAND, a house", "a house in (smland)", "[trigger], a house"])
def test_the_trigger_is_found_in_any_place_and_case(folder: Path, caption: str) -> None:
    (folder / "landscape_004.txt").write_text(caption)
    assert found(folder, REQUIRED) == set()


def test_a_trigger_that_no_caption_holds_is_said_once(folder: Path) -> None:
    assert found(folder, DatasetRules(trigger="o.h*w(x")) == {("warning", "trigger_missing", "")}


def test_a_byte_order_mark_is_not_part_of_the_caption(folder: Path) -> None:
    (folder / "landscape_004.txt").write_bytes(b"\xef\xbb\xbfsmland, a house")
    assert found(folder, REQUIRED) == set()
