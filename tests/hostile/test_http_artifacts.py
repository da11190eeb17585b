"""Files from strangers' machines over HTTP: nothing leads out of the job, and nothing is shown as a page."""

from __future__ import annotations

import io
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from stationmaster.api.file_response import attachment
from tests.support.jobs.served_files import JOB, FilesWorld, address

MODEL = bytes(range(256)) * 40


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FilesWorld]:
    with FilesWorld(tmp_path_factory.mktemp("files")) as opened:
        opened.put("output/model.safetensors", MODEL, kind="checkpoint")
        yield opened


@pytest.mark.parametrize(
    "target",
    [
        "../../../stationmaster.db",
        "..%2f..%2f..%2fstationmaster.db",
        "%2e%2e/%2e%2e/%2e%2e/stationmaster.db",
        "%2e%2e%2f%2e%2e%2f%2e%2e%2fstationmaster.db",
        "..%252f..%252fstationmaster.db",
        "..%5c..%5cstationmaster.db",
        "%c0%ae%c0%ae/%c0%ae%c0%ae/stationmaster.db",
        "output/../../../../stationmaster.db",
        "output/model.safetensors/../../../../../stationmaster.db",
        "%2fetc%2fpasswd",
        "//etc/passwd",
        "/etc/passwd",
        "file:///etc/passwd",
        "output/model.safetensors%00.png",
        "output//model.safetensors",
        "./output/model.safetensors",
        "",
    ],
)
def test_a_path_that_is_not_exactly_a_stored_one_leads_nowhere(world: FilesWorld, target: str) -> None:
    for below in ("artifacts", "thumbnails"):
        answer = world.raw(f"/api/jobs/{JOB}/{below}/{target}")
        assert answer.status in (404, 307, 422), answer
        assert b"SQLite" not in answer.body
        assert b"root:" not in answer.body


def test_a_file_that_became_a_link_is_not_followed(world: FilesWorld, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    row = world.put("output/link.png", b"secret")
    place = Path(str(row.location))
    place.unlink()
    place.symlink_to(secret)
    with world.client() as client:
        for below in ("artifacts", "thumbnails"):
            answer = client.get(address(row.path, below=below))
            assert answer.status_code == 404
            assert b"secret" not in answer.content


def test_a_folder_that_became_a_link_is_not_followed(world: FilesWorld, tmp_path: Path) -> None:
    row = world.put("output/below.png", b"picture", attempt=7)
    folder = Path(str(row.location)).parent
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with world.client() as client:
        assert client.get(address(row.path)).status_code == 404


def test_a_pipe_in_a_file_s_place_hangs_nobody(world: FilesWorld) -> None:
    row = world.put("output/pipe.png", b"picture")
    place = Path(str(row.location))
    place.unlink()
    os.mkfifo(place)
    with world.client() as client:
        assert client.get(address(row.path)).status_code == 404


def test_what_only_the_trainer_uses_is_neither_listed_nor_served(world: FilesWorld) -> None:
    row = world.put("output/state.pt", b"pickle", kind="state")
    with world.client() as client:
        assert row.path not in [each["path"] for each in client.get(f"/api/jobs/{JOB}/artifacts").json()["items"]]
        assert client.get(address(row.path)).status_code == 404


@pytest.mark.parametrize(
    "name",
    [
        'out/a"; filename="evil.html',
        "out/ünïcödé ☃.png",
        "out/a;b,c=d.png",
        "out/\x1b[31m",
    ],
)
def test_no_name_gets_into_the_headers_as_it_is(world: FilesWorld, name: str) -> None:
    world.put(name, b"bytes")
    answer = world.raw(address(name))
    assert (answer.status, answer.body) == (200, b"bytes")
    assert "set-cookie" not in answer.headers
    disposition = answer.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="')
    assert disposition.isascii()
    assert disposition.isprintable()
    assert disposition.count('"') == 2


def test_a_name_of_two_lines_has_no_address_and_would_be_one_header(world: FilesWorld) -> None:
    name = "out/a\r\nSet-Cookie: x=1\r\n.png"
    world.put(name, b"bytes")
    answer = world.raw(address(name))
    assert (answer.status, "set-cookie" in answer.headers) == (404, False)
    assert attachment("a\r\nb.png") == "attachment; filename=\"a__b.png\"; filename*=UTF-8''a%0D%0Ab.png"


@pytest.mark.parametrize("name", ["evil.html", "evil.svg", "evil.xml", "evil.js", "evil.png"])
def test_a_page_among_the_files_is_saved_and_never_rendered(world: FilesWorld, name: str) -> None:
    world.put(f"output/{name}", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>")
    answer = world.raw(address(f"output/{name}"), Accept="text/html")
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in answer.headers["content-security-policy"]
    with world.client() as client:
        small = client.get(address(f"output/{name}", below="thumbnails"))
    assert (small.status_code, small.headers["content-type"]) == (422, "application/problem+json")


@pytest.mark.parametrize(
    ("header", "status", "size"),
    [
        ("bytes=0-9", 206, 10),
        ("bytes=-10", 206, 10),
        ("bytes=10000-", 206, len(MODEL) - 10000),
        ("bytes=0-99999999999999999", 206, len(MODEL)),
        ("bytes=-99999999999999999", 206, len(MODEL)),
        ("bytes=99999-", 416, None),
        ("bytes=-0", 416, None),
        ("bytes=9-0", 200, len(MODEL)),
        ("bytes=-", 200, len(MODEL)),
        ("bytes=a-b", 200, len(MODEL)),
        ("bytes=0x1-0x2", 200, len(MODEL)),
        ("bytes=١-٢", 200, len(MODEL)),
        ("lines=1-2", 200, len(MODEL)),
        ("bytes=0-1,3-4", 200, len(MODEL)),
        ("bytes=" + ",".join(["0-"] * 1000), 200, len(MODEL)),
        ("bytes=" + "9" * 5000 + "-", 200, len(MODEL)),
    ],
)
def test_one_range_is_served_and_abuse_gets_the_file_once(
    world: FilesWorld, header: str, status: int, size: int | None
) -> None:
    answer = world.raw(address("output/model.safetensors"), Range=header.encode().decode("latin-1"))
    assert answer.status == status
    if size is None:
        assert answer.headers["content-range"] == f"bytes */{len(MODEL)}"
        assert answer.headers["content-type"] == "application/problem+json"
    else:
        assert len(answer.body) == size == int(answer.headers["content-length"])


def test_a_damaged_file_is_not_handed_out_in_part(world: FilesWorld) -> None:
    row = world.put("output/short.bin", b"0123456789")
    Path(str(row.location)).write_bytes(b"01234")
    with world.client() as client:
        answer = client.get(address(row.path))
    assert (answer.status_code, answer.json()["detail"]) == (502, "short.bin has changed since it was stored")


def png(width: int, height: int, *, data: bytes = b"") -> bytes:
    """A PNG that claims this size, whatever it holds."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def gif_bomb() -> bytes:
    made = io.BytesIO()
    Image.new("L", (4, 4)).save(made, "GIF")
    data = bytearray(made.getvalue())
    data[6:10] = struct.pack("<HH", 65535, 65535)
    return bytes(data)


def picture_with_metadata() -> bytes:
    made = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "the owner's secret"
    Image.new("RGB", (600, 300), (200, 30, 30)).save(made, "JPEG", exif=exif, comment=b"secret comment")
    return made.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        png(100_000, 100_000),
        png(30_000, 30_000, data=b"\0" * 1_000_000),
        png(64, 64, data=b"\0\0"),
        gif_bomb(),
        b"",
        b"\x89PNG\r\n\x1a\n",
        b"RIFF\xff\xff\xff\xffWEBPVP8 ",
        b"\xff\xd8\xff\xe0" + b"\xff" * 2000,
        b"BM" + b"\0" * 100,
        b"II*\0" + b"\0" * 100,
    ],
    ids=[
        "png bomb",
        "png of zeros",
        "cut png",
        "gif bomb",
        "empty",
        "png head",
        "webp head",
        "jpeg head",
        "bmp",
        "tiff",
    ],
)
def test_a_bomb_or_a_broken_picture_is_refused_before_it_is_decoded(world: FilesWorld, data: bytes) -> None:
    world.put("output/broken.png", data)
    with world.client() as client:
        answer = client.get(address("output/broken.png", below="thumbnails"))
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


def test_a_thumbnail_has_none_of_the_picture_s_metadata(world: FilesWorld) -> None:
    world.put("output/camera.jpg", picture_with_metadata())
    with world.client() as client:
        answer = client.get(address("output/camera.jpg", below="thumbnails"))
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")
    assert b"secret" not in answer.content
    with Image.open(io.BytesIO(answer.content)) as shown:
        assert (shown.size, shown.format, dict(shown.getexif())) == ((256, 128), "WEBP", {})
