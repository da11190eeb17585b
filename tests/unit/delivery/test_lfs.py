"""What the Hub says of large files, read: addresses, parts, their end; and what never goes to a machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.lfs import batch_request, commit_lines, completion, read_batch
from stationmaster.errors import DeliveryRefused

FILE = HubFile(name="m.safetensors", size=250, sha256="a" * 64)
LINK = "https://store/object?X-Amz-Signature=1"
NOW = 1_700_000_000.0  # 2023-11-14T22:13:20Z


def answer(upload: dict[str, Any] | None, transfer: str = "basic", **more: Any) -> dict[str, Any]:
    actions = {} if upload is None else {"actions": {"upload": upload, **more}}
    return {"transfer": transfer, "objects": [{"oid": FILE.sha256, "size": FILE.size, **actions}]}


def in_parts(upload_id: str, *, count: int = 3) -> dict[str, Any]:
    links = {
        f"{number:05}": f"https://store/{number}?uploadId={upload_id}&n={number}" for number in range(1, count + 1)
    }
    return answer({"href": "https://hub/complete", "header": {"chunk_size": "100", **links}}, "multipart")


def test_an_object_that_is_there_needs_nothing() -> None:
    assert read_batch(answer(None), FILE, now=NOW) is None


def test_one_address_takes_the_whole_file_with_the_headers_that_the_hub_named() -> None:
    headers = {"x-amz-storage-class": "INTELLIGENT_TIERING", "Transfer-Encoding": "chunked"}
    upload = read_batch(answer({"href": LINK, "header": headers}, verify={"href": "v"}), FILE, now=NOW)
    assert upload is not None
    (piece,) = upload.pieces
    assert (piece.request.url, piece.offset, piece.size) == (LINK, 0, 250)
    assert piece.request.headers == {"x-amz-storage-class": "INTELLIGENT_TIERING", "Content-Length": "250"}
    assert (upload.complete, upload.verify, upload.seconds, upload.id) == (None, "v", None, None)


def test_parts_come_in_order_and_the_last_is_shorter() -> None:
    upload = read_batch(in_parts("u1"), FILE, now=NOW)
    assert upload is not None
    assert [(piece.offset, piece.size) for piece in upload.pieces] == [(0, 100), (100, 100), (200, 50)]
    assert [piece.request.url[-1] for piece in upload.pieces] == ["1", "2", "3"]
    assert upload.complete == "https://hub/complete"


@pytest.mark.parametrize(("before", "after", "continues"), [("u1", "u1", True), ("u1", "u2", False), ("", "", False)])
def test_parts_count_only_while_it_is_the_same_upload(before: str, after: str, continues: bool) -> None:
    first, second = (read_batch(in_parts(name), FILE, now=NOW) for name in (before, after))
    assert first is not None
    assert second is not None
    assert second.continues(first) is continues


@pytest.mark.parametrize(
    ("action", "seconds"),
    [
        ({"expires_in": 900}, 900.0),
        ({"expires_at": "2023-11-14T22:23:20Z"}, 600.0),
        ({"expires_in": 60, "expires_at": "2023-11-14T22:23:20Z"}, 60.0),
        ({"expires_at": "0001-01-01T00:00:00Z"}, None),
        ({"expires_at": "soon"}, None),
        ({"expires_in": 0}, None),
        ({}, None),
    ],
)
def test_when_addresses_end_is_read_from_either_field(action: dict[str, Any], seconds: float | None) -> None:
    upload = read_batch(answer({"href": LINK, **action}), FILE, now=NOW)
    assert upload is not None
    assert upload.seconds == seconds


@pytest.mark.parametrize("count", [2, 4])
def test_parts_that_do_not_make_up_the_file_make_no_sense(count: int) -> None:
    with pytest.raises(ValueError, match="number of parts"):
        read_batch(in_parts("u1", count=count), FILE, now=NOW)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (answer({"href": LINK}, "xet"), "own transfer"),
        ({"objects": [{"oid": "a" * 64, "actions": {"verify": {"href": "v"}}}]}, "own transfer"),
        ({"objects": [{"oid": "a" * 64, "error": {"code": 422, "message": "too large"}}]}, "too large"),
        (answer({"href": LINK, "header": {"authorization": "Bearer x"}}), "credentials"),
        (answer({"href": LINK, "header": {"Cookie": "x"}}), "credentials"),
    ],
)
def test_what_cannot_go_by_a_signed_address_is_refused(document: dict[str, Any], said: str) -> None:
    with pytest.raises(DeliveryRefused, match=said):
        read_batch(document, FILE, now=NOW)


def test_only_transfers_by_signed_addresses_are_asked_for() -> None:
    assert batch_request(FILE)["transfers"] == ["basic", "multipart"]


def test_every_part_needs_its_etag() -> None:
    assert completion(FILE, ['"a"', '"b"'])["parts"][1] == {"partNumber": 2, "etag": '"b"'}
    with pytest.raises(DeliveryRefused, match="no ETag"):
        completion(FILE, ['"a"', ""])


def test_a_commit_holds_small_files_and_names_large_ones() -> None:
    lines = [json.loads(line) for line in commit_lines([FILE, HubFile.of_text("README.md", "# Cats")], message="m")]
    assert [line["key"] for line in lines] == ["header", "lfsFile", "file"]
    assert lines[1]["value"] == {"path": "m.safetensors", "algo": "sha256", "oid": "a" * 64, "size": 250}
    assert lines[2]["value"]["content"] == "IyBDYXRz"
