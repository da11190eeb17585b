from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.datasets.image_header import count_jpeg_scans, read_header
from tests.support.jobs.dataset_pictures import encoded, endless_jpeg, picture, png_bomb, webp_bomb


@pytest.mark.parametrize(
    ("form", "options"),
    [
        ("PNG", {}),
        ("JPEG", {}),
        ("JPEG", {"progressive": True, "exif": b"Exif\0\0MM\0*\0\0\0\x08\0\0"}),
        ("WEBP", {}),
        ("WEBP", {"lossless": True}),
    ],
)
@pytest.mark.parametrize("size", [(1, 1), (300, 200), (511, 1024)])
def test_format_and_size_are_read_without_decoding(
    form: str, options: dict[str, object], size: tuple[int, int]
) -> None:
    header = read_header(io.BytesIO(encoded(picture(size=(512, 512)).resize(size), form, **options)))
    assert header is not None
    assert (header.format, header.width, header.height) == (form, *size)


def test_an_animated_webp_tells_its_canvas() -> None:
    frames = [picture(size=(320, 200), seed=seed) for seed in (1, 2)]
    data = encoded(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    header = read_header(io.BytesIO(data))
    assert header is not None
    assert (header.width, header.height) == (320, 200)


@pytest.mark.parametrize("form", ["GIF", "BMP", "TIFF"])
def test_a_format_that_trainers_do_not_read_is_named(form: str) -> None:
    header = read_header(io.BytesIO(encoded(picture(), form)))
    assert header is not None
    assert header.format == form


def test_bombs_give_their_size_away() -> None:
    for bomb, side in ((png_bomb(side=20_000), 20_000), (webp_bomb(), 16_383)):
        header = read_header(io.BytesIO(bomb))
        assert header is not None
        assert header.width == header.height == side


def test_a_jpeg_made_of_endless_scans_is_counted() -> None:
    assert count_jpeg_scans(io.BytesIO(endless_jpeg(scans=3000))) >= 3000
    assert count_jpeg_scans(io.BytesIO(encoded(picture(), "JPEG", progressive=True))) < 20


@given(st.binary(max_size=200), st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"RIFF0000WEBP"]))
def test_no_bytes_can_confuse_the_reader(data: bytes, magic: bytes) -> None:
    header = read_header(io.BytesIO(magic + data))
    assert header is None or header.pixels >= 0
