from __future__ import annotations

import io

from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from stationmaster.datasets.near_duplicates import ImageSignature, near_duplicates, signature_of
from tests.support.jobs.dataset_pictures import encoded, picture


def reopened(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        image.load()
    return image


def test_a_smaller_and_compressed_copy_is_near() -> None:
    original = picture(size=(800, 600), seed=3)
    copy = reopened(encoded(original.resize((400, 300)), "JPEG", quality=40))
    assert signature_of(original).is_near(signature_of(copy))


def test_different_pictures_are_not_near() -> None:
    found = [signature_of(picture(seed=seed)) for seed in range(1, 8)]
    assert near_duplicates([(str(index), signature) for index, signature in enumerate(found)]) == []


def test_the_same_shapes_in_other_colours_are_not_near() -> None:
    red, blue = Image.new("RGB", (64, 64), "red"), Image.new("RGB", (64, 64), "blue")
    assert not signature_of(red).is_near(signature_of(blue))


def test_every_mode_has_a_signature() -> None:
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "HSV", "LAB", "I", "F", "I;16"):
        base = picture().convert("L") if mode == "LAB" else picture()
        image = (
            Image.new("LAB", base.size)
            if mode == "LAB"
            else base.convert("L").convert(mode)
            if mode == "I;16"
            else base.convert(mode)
        )
        assert len(signature_of(image).colours) == 48


STRUCTURES = st.integers(min_value=0, max_value=(1 << 512) - 1)


@given(structure=STRUCTURES, flips=st.sets(st.integers(min_value=0, max_value=511), max_size=16))
def test_a_copy_with_a_few_changed_bits_is_always_found(structure: int, flips: set[int]) -> None:
    changed = structure ^ sum(1 << bit for bit in flips)
    one, other = (ImageSignature(structure=value, colours=bytes(48)) for value in (structure, changed))
    assert near_duplicates([("one", one), ("other", other)]) == [("other", "one")]


@given(st.lists(STRUCTURES, max_size=20))
def test_whatever_is_called_near_is_near(structures: list[int]) -> None:
    named = [(str(index), ImageSignature(structure=value, colours=bytes(48))) for index, value in enumerate(structures)]
    known = dict(named)
    for copy, original in near_duplicates(named):
        assert known[copy].is_near(known[original])
        assert int(original) < int(copy)
