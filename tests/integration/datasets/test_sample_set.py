from __future__ import annotations

from pathlib import Path

from PIL import Image

from stationmaster.datasets.pack import fingerprint
from stationmaster.datasets.rules import CaptionRule, DatasetRules
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.datasets.validate import check


def test_the_sample_set_passes_every_check(tmp_path: Path) -> None:
    assert len(write_sample_set(tmp_path)) == 12
    report = check(tmp_path, DatasetRules(captions=CaptionRule.REQUIRED, trigger="smland", min_side=256))
    assert report.problems == ()
    assert (report.images, report.captions) == (12, 12)


def test_the_same_seed_paints_the_same_bytes(tmp_path: Path) -> None:
    for name, seed in (("one", 7), ("two", 7), ("other", 8)):
        write_sample_set(tmp_path / name, images=4, seed=seed)
    assert fingerprint(tmp_path / "one") == fingerprint(tmp_path / "two") != fingerprint(tmp_path / "other")


def test_a_longer_set_begins_like_a_shorter_one(tmp_path: Path) -> None:
    short, long = (write_sample_set(tmp_path / str(images), images=images) for images in (3, 5))
    assert [path.read_bytes() for path in short] == [path.read_bytes() for path in long[:3]]


def test_pictures_are_small_rgb_and_captions_hold_the_trigger(tmp_path: Path) -> None:
    for path in write_sample_set(tmp_path, images=6, trigger="ohwx"):
        with Image.open(path) as image:
            assert (image.size, image.mode) == ((256, 256), "RGB")
        assert path.with_suffix(".txt").read_text().startswith("ohwx, a ")
