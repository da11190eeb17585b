from __future__ import annotations

import codecs
import os
from pathlib import Path

import pytest
from PIL import Image

from stationmaster.datasets.pack import fingerprint, pack
from stationmaster.datasets.repair import fix
from stationmaster.datasets.rules import CaptionRule, DatasetRules
from stationmaster.datasets.validate import check
from stationmaster.errors import UserError
from tests.support.jobs.dataset_pictures import encoded, good_set, picture, png_bomb

RULES = DatasetRules(captions=CaptionRule.REQUIRED, trigger="smland")


def add(folder: Path, name: str, data: bytes, *, caption: str) -> None:
    (folder / name).write_bytes(data)
    (folder / f"{name.rpartition('.')[0]}.txt").write_text(f"smland, {caption}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Everything that can be repaired without asking, at once."""
    folder = good_set(tmp_path / "source")
    exif = Image.Exif()
    exif[0x0112] = 6
    add(folder, "turned.jpg", encoded(picture(seed=50, size=(300, 400)), "JPEG", exif=exif, quality=95), caption="a")
    add(folder, "really_png.jpg", encoded(picture(seed=51), "PNG"), caption="b")
    add(folder, "print.jpg", encoded(picture(seed=52, mode="CMYK"), "JPEG"), caption="c")
    moving = encoded(picture(seed=53), "WEBP", save_all=True, append_images=[picture(seed=54)], duration=90)
    add(folder, "moving.webp", moving, caption="d")
    add(folder, "old.bmp", encoded(picture(seed=55), "BMP"), caption="e")
    clear = Image.merge("RGBA", (*picture(seed=56).split(), Image.new("L", (256, 256), 0)))
    add(folder, "clear.png", encoded(clear, "PNG"), caption="f")
    add(folder, "it's $(x).png", encoded(picture(seed=57), "PNG"), caption="g")
    add(folder, "it_s __x_.png", encoded(picture(seed=58), "PNG"), caption="h")
    add(folder, os.fsdecode(b"caf\xe9.png"), encoded(picture(seed=59), "PNG"), caption="i")
    (folder / "landscape_001.txt").write_bytes("smland, in sixteen bits".encode("utf-16"))
    (folder / "landscape_002.txt").write_bytes(codecs.BOM_UTF8 + b"smland, with a mark")
    (folder / ".DS_Store").write_bytes(b"x")
    (folder / "passwd.png").symlink_to("/etc/passwd")
    return folder


def snapshot(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(file.relative_to(folder)): (file.read_bytes(), file.lstat().st_mtime_ns)
        for file in folder.rglob("*")
        if file.is_file()
    }


def test_everything_safe_is_repaired_and_the_source_is_untouched(source: Path, tmp_path: Path) -> None:
    before = snapshot(source)
    report = fix(source, tmp_path / "fixed", RULES)
    assert report.problems == ()
    assert report.images == report.captions == 19
    assert snapshot(source) == before
    assert check(tmp_path / "fixed", RULES).problems == ()


def test_every_repair_is_told(source: Path, tmp_path: Path) -> None:
    repairs = fix(source, tmp_path / "fixed", RULES).repairs
    assert "converted turned.jpg" in repairs
    assert "renamed really_png.jpg to really_png.png" in repairs
    assert "renamed it's $(x).png to it_s __x__2.png" in repairs
    assert "renamed it's $(x).txt to it_s __x__2.txt" in repairs
    assert "rewrote landscape_001.txt as plain UTF-8" in repairs
    assert "skipped .DS_Store (hidden)" in repairs
    assert "skipped passwd.png (link out)" in repairs
    assert not any("landscape_003" in repair for repair in repairs)


def test_the_pixels_are_turned_and_the_note_is_gone(source: Path, tmp_path: Path) -> None:
    fix(source, tmp_path / "fixed", RULES)
    with Image.open(tmp_path / "fixed" / "turned.jpg") as image:
        assert image.size == (400, 300)
        assert not image.getexif()
        turned = picture(seed=50, size=(300, 400)).transpose(Image.Transpose.ROTATE_270)
        assert (
            max(
                abs(a - b) for a, b in zip(image.resize((8, 8)).tobytes(), turned.resize((8, 8)).tobytes(), strict=True)
            )
            < 12
        )


def test_transparent_parts_become_white(source: Path, tmp_path: Path) -> None:
    fix(source, tmp_path / "fixed", RULES)
    with Image.open(tmp_path / "fixed" / "clear.png") as image:
        assert image.mode == "RGB"
        assert image.getpixel((100, 100)) == (255, 255, 255)


def test_a_good_image_is_copied_byte_for_byte(source: Path, tmp_path: Path) -> None:
    fix(source, tmp_path / "fixed", RULES)
    assert (tmp_path / "fixed" / "landscape_003.png").read_bytes() == (source / "landscape_003.png").read_bytes()


def test_a_good_set_is_copied_as_it_is(tmp_path: Path) -> None:
    report = fix(good_set(tmp_path / "source"), tmp_path / "fixed", RULES)
    assert report.repairs == ()
    assert fingerprint(tmp_path / "source") == fingerprint(tmp_path / "fixed")


def test_the_repaired_copy_can_be_packed(source: Path, tmp_path: Path) -> None:
    fix(source, tmp_path / "fixed", RULES)
    assert pack(tmp_path / "fixed", tmp_path / "set.tar").files == 38


def test_what_needs_a_decision_stays_and_is_reported(tmp_path: Path) -> None:
    folder = good_set(tmp_path / "source")
    add(folder, "bomb.png", png_bomb(), caption="a")
    add(folder, "cut.png", encoded(picture(), "PNG")[:300], caption="b")
    add(folder, "small.png", encoded(picture(size=(100, 100)), "PNG"), caption="c")
    report = fix(folder, tmp_path / "fixed", RULES)
    assert [problem.code for problem in report.errors] == ["image_too_large", "image_truncated", "image_too_small"]


def test_a_converted_image_does_not_replace_another(tmp_path: Path) -> None:
    folder = good_set(tmp_path / "source")
    (folder / "landscape_001.bmp").write_bytes(encoded(picture(seed=9), "BMP"))
    fix(folder, tmp_path / "fixed", RULES)
    assert (tmp_path / "fixed" / "landscape_001.png").exists()
    assert (tmp_path / "fixed" / "landscape_001_2.png").exists()


@pytest.mark.parametrize("target", ["source/inside", "source", ".", "taken", "full"])
def test_a_copy_never_lands_on_something_else(tmp_path: Path, target: str) -> None:
    good_set(tmp_path / "source")
    (tmp_path / "taken").write_text("mine")
    good_set(tmp_path / "full")
    before = snapshot(tmp_path)
    with pytest.raises(UserError):
        fix(tmp_path / "source", tmp_path / target, RULES)
    assert snapshot(tmp_path) == before
