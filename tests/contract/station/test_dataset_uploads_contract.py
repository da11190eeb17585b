"""What every face may rely on about uploads of datasets."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from PIL import Image

from stationmaster.errors import DatasetInvalid, DiskFull, NotFound, TooLarge, UserError, WrongOffset
from stationmaster.station.base import Station
from stationmaster.station.dataset_uploads import NewUpload, UploadedFile
from stationmaster.station.datasets import DatasetRules, parse_reference
from tests.support.jobs.dataset_pictures import encoded, good_set, picture
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station, here_and_over_http

pytestmark = here_and_over_http

OpenWorld = Callable[..., LocalWorld]


def put(station: Station, upload: str, path: str, content: bytes, *, sha256: str | None = None) -> UploadedFile:
    """Send a file as a whole."""
    uploads, size = station.dataset_uploads, len(content)
    with closing(uploads.write(upload, path, size=size, restart=True, sha256=sha256)) as writer:
        writer.append(content)
        return writer.finish()


def zip_of(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_pictures_come_with_their_captions_and_small_ones_of_them(world: LocalWorld, tmp_path: Path) -> None:
    uploads = world.station.dataset_uploads
    started = uploads.start(NewUpload(owner="me", name="cats", recipe="tiny-lora@1", trigger="smland"))
    assert (started.recipe, started.trigger) == ("tiny-lora@1", "smland")
    put(world.station, started.id, "a/1.png", encoded(picture(size=(300, 200)), "PNG"))
    put(world.station, started.id, "a/1.txt", b" smland, a hill\n")
    put(world.station, started.id, "a/2.png", encoded(picture(seed=2), "PNG"))
    put(world.station, started.id, "notes.md", b"# no picture")
    first, second = uploads.pictures(started.id)
    assert (first.path, first.caption) == ("a/1.png", "smland, a hill")
    assert (second.path, second.caption) == ("a/2.png", None)
    assert uploads.pictures(started.id, limit=1) == [first]
    assert uploads.pictures(started.id, after="a/1.png") == [second]
    small = uploads.thumbnail(started.id, "a/1.png", width=60)
    with Image.open(io.BytesIO(small.data)) as opened:
        assert (opened.format, opened.size) == ("WEBP", (60, 40))
    assert uploads.thumbnail(started.id, "a/1.png", width=60) == small
    put(world.station, started.id, "a/1.png", encoded(picture(size=(300, 100)), "PNG"))
    assert uploads.thumbnail(started.id, "a/1.png", width=60).version != small.version
    for missing in ("a/3.png", "notes.md"):
        with pytest.raises(NotFound):
            uploads.thumbnail(started.id, missing)
    uploads.remove(started.id)
    with pytest.raises(NotFound):
        uploads.pictures(started.id)


def put_piece(station: Station, upload: str, path: str, content: bytes, *, offset: int, size: int) -> UploadedFile:
    with closing(station.dataset_uploads.write(upload, path, size=size, offset=offset)) as writer:
        writer.append(content)
        return writer.finish()


@every_station
def test_uploaded_files_are_a_dataset(world: LocalWorld, tmp_path: Path) -> None:
    uploads = world.station.dataset_uploads
    started = uploads.start(NewUpload(owner="me", name="cats", recipe="tiny-lora@1", trigger="smland"))
    assert (started.name, started.owner, started.files, started.is_complete) == ("cats", "me", 0, False)
    assert started.expires_at > world.station.now() + 2 * 24 * 3600
    for file in sorted(good_set(tmp_path / "set").iterdir()):
        sent = put(world.station, started.id, f"pictures/{file.name}", file.read_bytes())
        assert (sent.is_complete, sent.problems) == (True, ())
    found = uploads.find(started.id)
    assert (found.files, found.is_complete) == (20, True)
    assert [file.is_complete for file in uploads.files(started.id)] == [True] * 20
    report = uploads.check(started.id)
    assert (report.is_trainable, report.images, report.captions) == (True, 10, 10)
    again = world.station.datasets.check(parse_reference(f"upload:{started.id} (cats)"), DatasetRules())
    assert (again.images, again.bytes) == (report.images, found.bytes)
    assert [one.id for one in uploads.listed("me")] == [started.id]
    uploads.remove(started.id)
    assert uploads.listed("me") == []
    for ask in (uploads.find, uploads.files, uploads.check, uploads.remove):
        with pytest.raises(NotFound, match="there is no upload"):
            ask(started.id)


@every_station
def test_a_file_that_was_interrupted_goes_on_where_it_stopped(world: LocalWorld) -> None:
    station, content = world.station, encoded(picture(), "PNG")
    upload = station.dataset_uploads.start(NewUpload(owner="me", name="cats")).id
    size, half = len(content), len(content) // 2
    with pytest.raises(NotFound):
        station.dataset_uploads.file(upload, "a.png")
    assert put_piece(station, upload, "a.png", content[:half], offset=0, size=size).received == half
    assert not station.dataset_uploads.find(upload).is_complete
    with pytest.raises(DatasetInvalid, match=r"not complete: a\.png has"):
        station.dataset_uploads.check(upload)
    for wrong in (0, half - 1, half + 1):
        with pytest.raises(WrongOffset, match=f"has {half} of {size} bytes"):
            put_piece(station, upload, "a.png", content[wrong:], offset=wrong, size=size)
    assert station.dataset_uploads.file(upload, "a.png").received == half
    assert put_piece(station, upload, "a.png", content[half:], offset=half, size=size).is_complete
    with pytest.raises(WrongOffset, match="is complete"):
        put_piece(station, upload, "a.png", content[half:], offset=half, size=size)
    assert put(station, upload, "a.png", content[:half]).is_complete, "sent anew from its first byte"
    assert station.dataset_uploads.file(upload, "a.png").size == half


def test_a_file_with_another_hash_than_announced_is_dropped(world: LocalWorld) -> None:
    upload = world.station.dataset_uploads.start(NewUpload(owner="me", name="cats")).id
    right = hashlib.sha256(b"smland, a house").hexdigest()
    with pytest.raises(DatasetInvalid, match="another SHA-256"):
        put(world.station, upload, "a.txt", b"smland, a mouse", sha256=right)
    with pytest.raises(NotFound):
        world.station.dataset_uploads.file(upload, "a.txt")
    assert put(world.station, upload, "a.txt", b"smland, a house", sha256=right).is_complete


def test_what_is_wrong_with_a_file_is_told_when_it_has_arrived(world: LocalWorld) -> None:
    upload = world.station.dataset_uploads.start(NewUpload(owner="me", name="cats", recipe="tiny-lora@1")).id
    sent = {
        "empty.png": b"",
        "text.png": b"this is no image",
        "cut.png": encoded(picture(), "PNG")[:-200],
        "latin.txt": "caf\xe9".encode("latin-1"),
        "film.gif": b"GIF89a",
        "all.zip": b"PK nothing",
        "it's.txt": b"smland, a house",
    }
    told = {path: put(world.station, upload, path, content).problems for path, content in sent.items()}
    assert {path: [problem.code for problem in problems] for path, problems in told.items()} == {
        "empty.png": ["image_empty"],
        "text.png": ["image_unreadable"],
        "cut.png": ["image_truncated"],
        "latin.txt": ["caption_not_utf8"],
        "film.gif": ["image_format"],
        "all.zip": ["archive_unreadable"],
        "it's.txt": ["name_unsafe"],
    }
    assert all(problem.fix for problems in told.values() for problem in problems)


@pytest.mark.parametrize(
    "path",
    ["../a.png", "/a.png", "a/../../b.png", "a//b.png", "./a.png", ".hidden.png", "a\nb.png", "a\\b.png", "a\0.png",
     "run.sh", "a", f"{'a' * 201}.png", "/".join("a" * 17) + ".png", "Thumbs.db"],
)  # fmt: skip
def test_a_name_that_cannot_be_part_of_a_dataset_is_refused(local_world: LocalWorld, path: str) -> None:
    upload = local_world.station.dataset_uploads.start(NewUpload(owner="me", name="cats")).id
    with pytest.raises(DatasetInvalid, match="cannot be uploaded"):
        put(local_world.station, upload, path, b"x")
    assert local_world.station.dataset_uploads.files(upload) == []


@every_station
def test_an_archive_is_sent_once_and_only_as_it_was_announced(world: LocalWorld, tmp_path: Path) -> None:
    station = world.station
    packed = station.datasets.pack(good_set(tmp_path / "set"), tmp_path / "set.tar")
    new = NewUpload(owner="me", name="cats", sha256=packed.sha256, size=packed.size)
    upload, content = station.dataset_uploads.start(new), packed.path.read_bytes()
    with pytest.raises(DatasetInvalid, match="as announced"):
        put(station, upload.id, "cat.png", content)
    with pytest.raises(DatasetInvalid, match="another SHA-256"):
        put(station, upload.id, "cats.tar", bytes(packed.size))
    put_piece(station, upload.id, "cats.tar", content[:5000], offset=0, size=packed.size)
    assert station.dataset_uploads.start(new).id == upload.id, "one that was begun is continued"
    put_piece(station, upload.id, "cats.tar", content[5000:], offset=5000, size=packed.size)
    known = station.dataset_uploads.start(new)
    assert (known.id, known.is_complete) == (upload.id, True)
    assert station.dataset_uploads.check(known.id).images == 10
    with pytest.raises(UserError, match="belong together"):
        station.dataset_uploads.start(NewUpload(owner="me", name="cats", sha256=packed.sha256))


@every_station
def test_uploads_have_limits_and_leave_disk_space_free(open_world: OpenWorld) -> None:
    world = open_world(
        STATIONMASTER_SERVE__LARGEST_DATASET_BYTES="100000", STATIONMASTER_SERVE__DATASET_BYTES_PER_USER="150000"
    )
    uploads = world.station.dataset_uploads
    first, second = (uploads.start(NewUpload(owner="me", name=name)).id for name in ("first", "second"))
    with pytest.raises(TooLarge, match="a dataset may have 100,000 bytes"):
        put(world.station, first, "a.jsonl", bytes(100_001))
    put(world.station, first, "a.jsonl", bytes(20_000))
    put(world.station, first, "a.jsonl", bytes(80_000))
    with pytest.raises(TooLarge, match="a user may have 150,000 bytes"):
        put(world.station, second, "a.jsonl", bytes(80_000))
    uploads.remove_file(first, "a.jsonl")
    assert put(world.station, second, "a.jsonl", bytes(80_000)).is_complete
    bomb = uploads.start(NewUpload(owner="me", name="bomb")).id
    put(world.station, bomb, "bomb.zip", zip_of({"a.png": bytes(100_001)}))
    with pytest.raises(DatasetInvalid, match="unpacks to more than 100,000 bytes"):
        uploads.check(bomb)
    full = open_world(STATIONMASTER_SERVE__FREE_DISK_BYTES=str(2**60))
    with pytest.raises(DiskFull, match="to stay free"):
        put(full.station, second, "b.jsonl", b"{}")


@every_station
def test_uploads_are_listed_in_pages(world: LocalWorld) -> None:
    uploads = world.station.dataset_uploads
    made = [uploads.start(NewUpload(owner="me", name=f"cats {number}")).id for number in range(3)]
    first = uploads.listed("me", limit=2)
    rest = uploads.listed("me", limit=2, after=first[-1].id)
    assert [one.id for one in (*first, *rest)] == made[::-1]
    with pytest.raises(UserError, match="after"):
        uploads.listed("me", after="nothing")


def test_what_cannot_be_begun_is_refused(world: LocalWorld) -> None:
    start = world.station.dataset_uploads.start
    with pytest.raises(UserError, match="printable"):
        start(NewUpload(owner="me", name="two\nlines"))
    with pytest.raises(NotFound, match="tiny-laura"):
        start(NewUpload(owner="me", name="cats", recipe="tiny-laura@1"))
    with pytest.raises(NotFound, match="nobody"):
        start(NewUpload(owner="nobody", name="cats"))
    with pytest.raises(TooLarge):
        start(NewUpload(owner="me", name="cats", sha256="0" * 64, size=2**49))
    for wrong in ("nothing", "0" * 32):
        with pytest.raises(NotFound, match="there is no upload"):
            world.station.dataset_uploads.find(wrong)
