from __future__ import annotations

import io
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from stationmaster.datasets.image_file import examine, quiet_pillow
from stationmaster.datasets.report import DatasetReport, Severity
from stationmaster.datasets.rules import CaptionRule, DatasetRules
from stationmaster.datasets.tree import files_of, scan
from stationmaster.datasets.validate import check
from stationmaster.errors import DatasetInvalid, NotFound
from stationmaster.station.wire.datasets import DatasetReportDocument
from tests.support.jobs.dataset_pictures import encoded, endless_jpeg, good_set, picture, png_bomb, webp_bomb

RULES = DatasetRules(captions=CaptionRule.REQUIRED, trigger="smland")


def found(report: DatasetReport) -> set[tuple[str, str, str]]:
    return {(problem.severity.value, problem.code, problem.path) for problem in report.problems}


def add(folder: Path, name: str, data: bytes, *, caption: str = "smland, one more picture") -> None:
    (folder / name).write_bytes(data)
    (folder / name).with_suffix(".txt").write_text(caption)


def test_a_good_set_has_no_problem(tmp_path: Path) -> None:
    report = check(good_set(tmp_path), RULES)
    assert report.problems == ()
    assert (report.images, report.captions, report.files) == (10, 10, 20)
    assert report.bytes == sum(file.stat().st_size for file in tmp_path.iterdir())
    assert report.is_trainable
    report.raise_for_errors()


def test_nine_images_are_too_few(tmp_path: Path) -> None:
    report = check(good_set(tmp_path, images=9), RULES)
    assert found(report) == {("error", "too_few_images", "")}
    with pytest.raises(DatasetInvalid, match="9 images") as caught:
        report.raise_for_errors()
    assert caught.value.exit_code == 5


def test_fewer_than_recommended_is_a_warning(tmp_path: Path) -> None:
    report = check(good_set(tmp_path), DatasetRules(recommended_images=20))
    assert found(report) == {("warning", "few_images", "")}


def test_a_missing_folder_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        check(tmp_path / "nowhere", RULES)
    (tmp_path / "file").write_text("x")
    with pytest.raises(DatasetInvalid, match="not a folder"):
        check(tmp_path / "file", RULES)


PNG, JPEG, WEBP = (encoded(picture(seed=99), form) for form in ("PNG", "JPEG", "WEBP"))
ANIMATION = encoded(picture(seed=99), "WEBP", save_all=True, append_images=[picture(seed=98)], duration=100)
MOVING_PNG = encoded(picture(seed=99), "PNG", save_all=True, append_images=[picture(seed=98)], duration=100)


TRANSPARENT = encoded(Image.merge("RGBA", (*picture(seed=99).split(), Image.linear_gradient("L"))), "PNG")


@pytest.mark.parametrize(
    ("name", "data", "severity", "code"),
    [
        ("x.png", b"", "error", "image_empty"),
        ("x.png", b"<html>not found</html>", "error", "image_unreadable"),
        ("x.png", PNG[: len(PNG) // 2], "error", "image_truncated"),
        ("x.jpg", JPEG[: len(JPEG) // 2], "error", "image_truncated"),
        ("x.webp", WEBP[: len(WEBP) // 2], "error", "image_unreadable"),
        ("x.png", PNG[:400] + b"\0\0\0\0" + PNG[404:], "error", "image_unreadable"),
        ("x.png", encoded(picture(seed=99, size=(20, 40)), "PNG"), "error", "image_tiny"),
        ("x.png", encoded(picture(seed=99, size=(400, 255)), "PNG"), "error", "image_too_small"),
        ("x.png", encoded(picture(seed=99), "GIF"), "error", "image_format"),
        ("x.png", b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "error", "image_format"),
        ("x.png", png_bomb(), "error", "image_too_large"),
        ("x.webp", webp_bomb(), "error", "image_too_large"),
        ("x.jpg", endless_jpeg(), "error", "image_unreadable"),
        ("x.jpg", PNG, "warning", "image_wrong_suffix"),
        ("x.webp", ANIMATION, "warning", "image_animated"),
        ("x.png", MOVING_PNG, "warning", "image_animated"),
        ("x.png", TRANSPARENT, "warning", "image_transparent"),
        ("x.jpg", encoded(picture(seed=99, mode="CMYK"), "JPEG"), "warning", "image_mode"),
        ("x.png", encoded(picture(seed=99, size=(900, 256)), "PNG"), "warning", "image_aspect"),
    ],
)
def test_each_fault_of_an_image_is_found_alone(
    tmp_path: Path, name: str, data: bytes, severity: str, code: str
) -> None:
    add(good_set(tmp_path), name, data)
    assert found(check(tmp_path, RULES)) == {(severity, code, name)}


@pytest.mark.parametrize("mode", ["L", "P", "1", "RGBA", "LA"])
def test_a_mode_that_trainers_convert_rightly_is_left_in_peace(tmp_path: Path, mode: str) -> None:
    add(good_set(tmp_path), "x.png", encoded(picture(seed=99).convert(mode), "PNG"))
    assert found(check(tmp_path, RULES)) == set()


@pytest.mark.parametrize("orientation", range(2, 9))
def test_an_image_turned_by_exif_only_is_found(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    add(good_set(tmp_path), "x.jpg", encoded(picture(seed=99), "JPEG", exif=exif))
    assert found(check(tmp_path, RULES)) == {("warning", "image_exif_rotated", "x.jpg")}


def test_a_damaged_exif_block_does_not_spoil_the_image(tmp_path: Path) -> None:
    broken = b"Exif\0\0MM\0*\0\0\0\x08\xff\xff" + b"\x01\x12" * 9
    add(good_set(tmp_path), "x.jpg", encoded(picture(seed=99), "JPEG", exif=broken))
    assert found(check(tmp_path, RULES)) == set()


def test_recommended_size_is_a_warning_only(tmp_path: Path) -> None:
    report = check(good_set(tmp_path), DatasetRules(recommended_side=512))
    assert {(problem.severity, problem.code) for problem in report.problems} == {(Severity.WARNING, "image_small")}
    assert len(report.warnings) == 10


def test_the_same_file_twice_and_a_lookalike_are_told_apart(tmp_path: Path) -> None:
    good_set(tmp_path)
    original = (tmp_path / "landscape_003.png").read_bytes()
    add(tmp_path, "twice.png", original)
    with Image.open(io.BytesIO(original)) as image:
        add(tmp_path, "zoomed.jpg", encoded(image.resize((512, 512)), "JPEG", quality=80), caption="smland, again")
    report = check(tmp_path, RULES)
    assert found(report) == {
        ("warning", "image_duplicate", "twice.png"),
        ("warning", "image_near_duplicate", "zoomed.jpg"),
    }
    assert all("landscape_003.png" in problem.message for problem in report.problems)


def test_images_that_share_a_stem_share_a_caption(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / "landscape_001.jpg").write_bytes(encoded(picture(seed=99), "JPEG"))
    assert found(check(tmp_path, RULES)) == {("warning", "image_same_stem", "landscape_001.png")}


def test_images_in_subfolders_are_named_when_the_trainer_does_not_look_there(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / "more").mkdir()
    add(tmp_path / "more", "x.png", PNG)
    assert found(check(tmp_path, RULES)) == set()
    flat = DatasetRules(captions=CaptionRule.REQUIRED, subfolders=False)
    assert found(check(tmp_path, flat)) == {("warning", "image_in_subfolder", "more/x.png")}


def test_other_files_are_named_as_unused(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / "notes.docx").write_bytes(b"x")
    (tmp_path / "old.bmp").write_bytes(encoded(picture(), "BMP"))
    assert found(check(tmp_path, RULES)) == {
        ("warning", "file_unused", "notes.docx"),
        ("warning", "image_format", "old.bmp"),
    }


def test_every_image_needs_its_control_image(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / "control").mkdir()
    for number in range(2, 11):
        (tmp_path / "control" / f"landscape_{number:03d}.jpg").write_bytes(encoded(picture(seed=number), "JPEG"))
    (tmp_path / "control" / "extra.png").write_bytes(PNG)
    rules = DatasetRules(captions=CaptionRule.REQUIRED, control_folder="control")
    report = check(tmp_path, rules)
    assert report.images == 10
    assert found(report) == {
        ("error", "control_missing", "landscape_001.png"),
        ("warning", "control_unused", "control/extra.png"),
    }


def test_what_is_not_a_plain_file_is_named_and_never_opened(tmp_path: Path) -> None:
    folder = good_set(tmp_path / "set")
    (tmp_path / "secret.png").write_bytes(PNG)
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "broken.png").symlink_to("nowhere.png")
    (folder / "folder").symlink_to(".")
    (folder / ".DS_Store").write_bytes(b"x")
    os.mkfifo(folder / "pipe.png")
    assert found(check(folder, RULES)) == {
        ("error", "link_out_of_folder", "out.png"),
        ("error", "link_broken", "broken.png"),
        ("error", "link_to_folder", "folder"),
        ("error", "not_a_file", "pipe.png"),
        ("warning", "hidden_file", ".DS_Store"),
    }


def test_hostile_names_are_found_and_reported_as_data(tmp_path: Path) -> None:
    good_set(tmp_path)
    for number, name in enumerate(["$(id).png", "two\nlines.png", os.fsdecode(b"caf\xe9.png")]):
        add(tmp_path, name, encoded(picture(seed=90 + number), "PNG"), caption=f"smland, {number}")
    report = check(tmp_path, RULES)
    assert {problem.code for problem in report.problems} == {"name_unsafe", "name_control_character", "name_not_utf8"}
    told = DatasetReportDocument.of(report)
    assert all(problem.path.isprintable() for problem in told.problems)
    assert DatasetReportDocument.of(told.value()) == told, "what was shown stays as it is"


def test_errors_come_first(tmp_path: Path) -> None:
    good_set(tmp_path)
    (tmp_path / ".hidden").write_bytes(b"")
    add(tmp_path, "zzz.png", b"")
    assert [problem.severity.value for problem in check(tmp_path, RULES).problems] == ["error", "warning"]


def test_bombs_are_judged_within_half_a_gigabyte(tmp_path: Path) -> None:
    """In a process of its own that may not have more; decoded, the bomb alone would need 900 MB."""
    good_set(tmp_path)
    add(tmp_path, "bomb.png", png_bomb())
    add(tmp_path, "bomb.webp", webp_bomb())
    script = (
        "import sys; from pathlib import Path; from stationmaster.datasets.validate import check;"
        "print([p.code for p in check(Path(sys.argv[1])).errors])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (512 << 20, 512 << 20)),
    )
    assert done.stdout.strip() == "['image_too_large', 'image_too_large']"


@given(
    original=st.sampled_from([PNG, JPEG, WEBP, ANIMATION, MOVING_PNG]),
    cut=st.integers(min_value=1, max_value=4000),
    changes=st.lists(st.tuples(st.integers(min_value=8, max_value=600), st.binary(min_size=1, max_size=4)), max_size=4),
)
def test_no_damage_can_make_the_check_fail_itself(original: bytes, cut: int, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(original)
    for offset, patch in changes:
        data[offset : offset + len(patch)] = patch
    with tempfile.TemporaryDirectory() as temporary, quiet_pillow():
        Path(temporary, "x.png").write_bytes(data[: max(1, len(data) - cut + 1)])
        (entry,) = files_of(scan(Path(temporary)))
        seen = examine(entry, RULES)
        assert seen.decoded is not None or [problem.severity for problem in seen.problems] == [Severity.ERROR]
