"""Datasets arrive at a real server: over connections that break, from several senders at once, under hostile names."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from stationmaster.control.periodic.dataset_cleanup import recount_uploads, remove_unused_uploads
from stationmaster.datasets.uploads.folder import UNUSED_SECONDS
from stationmaster.model import Outcome, Role
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.dataset_upload import upload_dataset
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.jobs.dataset_pictures import encoded, picture
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.submitting import retry, submit
from tests.support.waiting import until

MIB = 1 << 20


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    with HttpWorld(tmp_path_factory.mktemp("uploads")) as opened:
        for name in ("ann", "bob"):
            opened.local.users.add(name, UserChanges(inbox=True, role=Role.USER))
        yield opened


def token_of(world: HttpWorld, user: str) -> str:
    return world.local.tokens.create(NewToken(name="test", user=user)).secret


@pytest.fixture
def ann(world: HttpWorld) -> Iterator[httpx.Client]:
    with client_of(world, "ann") as client:
        yield client


def client_of(world: HttpWorld, user: str) -> httpx.Client:
    return httpx.Client(
        base_url=world.urls[0], headers={"Authorization": f"Bearer {token_of(world, user)}"}, verify=False
    )


def start(client: httpx.Client, **more: object) -> str:
    answer = client.post("/api/datasets", json={"name": "cats", **more})
    assert answer.status_code == 201, answer.text
    upload = answer.json()
    assert upload["reference"] == f"upload:{upload['id']}"
    return str(upload["id"])


def piece(first: int, content: bytes, size: int) -> dict[str, str]:
    return {"Content-Range": f"bytes {first}-{first + len(content) - 1}/{size}"}


def send_head(world: HttpWorld, path: str, *headers: str) -> socket.socket:
    """A request as raw bytes, as far as its headers."""
    host, port = world.urls[0].removeprefix("http://").split(":")
    connection = socket.create_connection((host, int(port)))
    who = f"Authorization: Bearer {token_of(world, 'ann')}"
    lines = [f"PUT {path} HTTP/1.1", f"Host: {host}:{port}", who, *headers]
    connection.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
    return connection


def status_of(connection: socket.socket) -> int:
    with connection:
        return int(connection.recv(4096).split()[1])


def test_what_arrived_before_a_connection_broke_stays_and_the_rest_follows(world: HttpWorld, ann: httpx.Client) -> None:
    content = os.urandom(3 * MIB)
    path = f"/api/datasets/{start(ann)}/files/rows.jsonl"
    connection = send_head(
        world, path, f"Content-Length: {len(content)}", f"Content-Range: bytes 0-{3 * MIB - 1}/{3 * MIB}"
    )
    connection.sendall(content[: 2 * MIB + 1000])
    connection.close()
    until(lambda: ann.get(path).json().get("received") == 2 * MIB + 1000, "all that was sent has been written")
    there = ann.head(path)
    assert (there.headers["upload-offset"], there.headers["upload-complete"]) == (str(2 * MIB + 1000), "?0")
    rest = content[2 * MIB + 1000 :]
    wrong = ann.put(path, content=content[:100], headers=piece(0, content[:100], len(content)))
    assert (wrong.status_code, wrong.headers["upload-offset"]) == (409, str(2 * MIB + 1000))
    sha256 = hashlib.sha256(content).hexdigest()
    answer = ann.put(
        path, content=rest, headers={**piece(2 * MIB + 1000, rest, len(content)), "Content-SHA256": sha256}
    )
    assert answer.json() | {"problems": []} == {
        "path": "rows.jsonl", "received": len(content), "size": len(content), "complete": True, "problems": [],
    }  # fmt: skip


def test_a_sender_that_hangs_does_not_keep_another_from_going_on(world: HttpWorld, ann: httpx.Client) -> None:
    content = os.urandom(2 * MIB)
    path = f"/api/datasets/{start(ann)}/files/rows.jsonl"
    hanging = send_head(world, path, f"Content-Length: {2 * MIB}", f"Content-Range: bytes 0-{2 * MIB - 1}/{2 * MIB}")
    hanging.sendall(content[:MIB])
    until(lambda: ann.get(path).json().get("received", 0) > 0, "the first sender has begun")
    at = ann.get(path).json()["received"]
    answer = ann.put(path, content=content[at:], headers=piece(at, content[at:], len(content)))
    assert answer.json()["complete"]
    hanging.sendall(content[MIB:])
    assert status_of(hanging) == 409, "the first one was too late"


def test_of_several_senders_of_one_file_one_wins_at_each_place(world: HttpWorld, ann: httpx.Client) -> None:
    contents = [bytes([letter]) * (64 << 10) for letter in b"abcd"]
    path = f"/api/datasets/{start(ann)}/files/rows.jsonl"
    together = threading.Barrier(4)

    def send(content: bytes) -> list[int]:
        """Every sender tries every piece of the file."""
        statuses = []
        with client_of(world, "ann") as client:
            together.wait()
            for number in range(8):
                at = number * len(content)
                answer = client.put(path, content=content, headers=piece(at, content, 8 * len(content)))
                statuses.append(answer.status_code)
        return statuses

    with ThreadPoolExecutor(4) as threads:
        outcomes = list(threads.map(send, contents))
    assert {status for statuses in outcomes for status in statuses} <= {200, 409}
    received = ann.get(path).json()["received"]
    won = sum(statuses.count(200) for statuses in outcomes)
    assert received == won * (64 << 10) > 0
    folder = world.settings.home / "uploads" / path.split("/")[3]
    (stored,) = [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size >= 64 << 10]
    pieces = [stored.read_bytes()[at : at + (64 << 10)] for at in range(0, received, 64 << 10)]
    assert all(each in contents for each in pieces), "no piece is mixed from two senders"


@pytest.mark.parametrize(
    "name",
    ["../../stationmaster.db", "%2e%2e/%2e%2e/x.png", "..%2F..%2Fx.png", "%2Fetc%2Fpasswd.txt", "a%00.png", "a%0Ab.png",
     "%ff%fe.png/..%2f", "a%5C..%5Cb.png", ".ssh/authorized_keys.txt", "x" * 999 + ".png", "CON", "run.sh"],
)  # fmt: skip
def test_a_hostile_name_is_refused_and_writes_nothing(world: HttpWorld, ann: httpx.Client, name: str) -> None:
    upload = start(ann)
    before = {path for path in world.folder.rglob("*") if "uploads" not in path.parts}
    connection = send_head(world, f"/api/datasets/{upload}/files/{name}", "Content-Length: 1")
    connection.sendall(b"x")
    assert status_of(connection) in (404, 405, 422)
    assert ann.get(f"/api/datasets/{upload}").json()["files"] == 0
    assert {path for path in world.folder.rglob("*") if "uploads" not in path.parts} <= before | set(
        world.settings.home.glob("*")
    )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Range": "bytes 0-9/5"}, 400),
        ({"Content-Range": "bytes 0-99/100"}, 400),
        ({"Content-Range": "chunks 1-2/3"}, 400),
        ({"Content-Range": f"bytes 0-3/{2**49}"}, 413),
        ({"Content-Range": f"bytes 0-3/{'9' * 30}"}, 400),
        ({"Content-Range": "bytes */4"}, 400),
        ({"Content-Range": "bytes 4-7/8"}, 409),
        ({"Content-SHA256": "no hash"}, 422),
        ({"Content-SHA256": "0" * 64}, 422),
        ({"Transfer-Encoding": "chunked"}, 400),
    ],
)
def test_headers_that_do_not_fit_are_refused(ann: httpx.Client, headers: dict[str, str], status: int) -> None:
    path = f"/api/datasets/{start(ann)}/files/a.txt"
    answer = ann.put(path, content=iter([b"abcd"]) if "Transfer-Encoding" in headers else b"abcd", headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["detail"]
    assert ann.get(path).status_code == 404


def test_another_s_upload_does_not_exist(world: HttpWorld, ann: httpx.Client) -> None:
    upload = start(ann)
    assert ann.put(f"/api/datasets/{upload}/files/a.txt", content=b"a cat").json()["complete"]
    with client_of(world, "bob") as bob:
        for id_ in (upload, "0" * 32):
            asked = [
                bob.get(f"/api/datasets/{id_}"),
                bob.get(f"/api/datasets/{id_}/files"),
                bob.get(f"/api/datasets/{id_}/files/a.txt"),
                bob.put(f"/api/datasets/{id_}/files/a.txt", content=b"a dog"),
                bob.delete(f"/api/datasets/{id_}/files/a.txt"),
                bob.delete(f"/api/datasets/{id_}"),
                bob.post(f"/api/datasets/{id_}/check", json={}),
                bob.post("/api/datasets/check", json={"dataset": f"upload:{id_}"}),
            ]
            told = {(answer.status_code, answer.json()["detail"].replace(id_, "ID")) for answer in asked}
            assert told == {(404, "there is no upload ID")}
        assert upload not in bob.get("/api/datasets").text
        assert bob.get("/api/datasets", params={"user": "ann"}).status_code == 404
        for source in ("s3://pictures/cats", "hf://datasets/anna/cats"):
            assert bob.post("/api/datasets/check", json={"dataset": source}).status_code == 403
        assert bob.post("/api/datasets/check", json={"dataset": "/etc"}).status_code == 400
    assert ann.get(f"/api/datasets/{upload}/files/a.txt").json()["size"] == 5


def test_files_are_listed_in_pages_and_can_be_replaced_and_removed(ann: httpx.Client) -> None:
    files = f"/api/datasets/{start(ann, recipe='tiny-lora@1')}/files"
    small = encoded(picture(size=(16, 16)), "PNG")
    answer = ann.put(f"{files}/b/1.png", content=small).json()
    assert [problem["code"] for problem in answer["problems"]] == ["image_tiny"]
    assert ann.put(f"{files}/b/1.png", content=encoded(picture(), "PNG")).json()["problems"] == []
    assert ann.put(f"{files}/a.txt", content=b"smland").status_code == 200
    assert ann.put(f"{files}/b", content=b"smland").status_code == 422
    first = ann.get(files, params={"limit": 1}).json()
    second = ann.get(files, params={"limit": 1, "after": first["next"]}).json()
    assert [page["items"][0]["path"] for page in (first, second)] == ["a.txt", "b/1.png"]
    assert second["next"] is None
    assert ann.delete(f"{files}/a.txt").status_code == 204
    assert ann.get(f"{files}/a.txt").status_code == 404


def test_an_upload_that_was_not_used_for_days_is_removed_and_one_that_is_used_stays(
    world: HttpWorld, ann: httpx.Client
) -> None:
    old, used = start(ann), start(ann)
    for upload in (old, used):
        ann.put(f"/api/datasets/{upload}/files/a.txt", content=b"a cat")
        about = world.settings.home / "uploads" / upload / "about.json"
        past = about.stat().st_mtime - UNUSED_SECONDS - 1
        os.utime(about, (past, past))
    assert ann.post(f"/api/datasets/{used}/check", json={}).status_code == 200
    gone = remove_unused_uploads(world.settings.home, world.store)
    assert [path.name for path in gone] == [old]
    assert [ann.get(f"/api/datasets/{upload}").status_code for upload in (old, used)] == [404, 200]


def test_what_a_killed_server_counted_too_much_is_counted_again(world: HttpWorld, ann: httpx.Client) -> None:
    upload = start(ann)
    ann.put(f"/api/datasets/{upload}/files/a.txt", content=b"a cat")
    ann.put(f"/api/datasets/{upload}/files/b.png", content=b"x" * 10, headers=piece(0, b"x" * 10, 20_000))
    uploads = world.store.dataset_uploads
    before = uploads.find(upload)
    uploads.charge(upload, 5_000, most=MIB, most_of_owner=1 << 40)  # killed before it made the file
    recount_uploads(world.settings.home, world.store)
    assert before is not None
    assert uploads.find(upload) == before
    assert before.charged_bytes == (16 << 10) + 20_000, "a small file counts as a block, one on its way as a whole"


def test_a_folder_goes_to_the_server_in_pieces_and_only_once(world: HttpWorld, tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "my cats")
    connection = Connection(world.urls[0], token_of(world, "ann"))
    told: list[tuple[int, int]] = []
    reference = upload_dataset(connection, folder, progress=lambda done, total: told.append((done, total)))
    assert (reference.name, told[-1][0]) == ("my cats", told[-1][1])
    told.clear()
    assert upload_dataset(connection, folder, progress=lambda done, total: told.append((done, total))) == reference
    assert told == [], "nothing was sent again"
    (folder / "new.txt").write_text("a new caption")
    assert upload_dataset(connection, folder) != reference
    connection.close()


def test_an_uploaded_dataset_is_trained_on_and_a_retry_needs_no_upload(world: HttpWorld, tmp_path: Path) -> None:
    connection = Connection(world.urls[0], token_of(world, "me"))
    reference = upload_dataset(connection, write_pictures(tmp_path / "cats"))
    connection.close()
    submit(world.station, world.request(reference, id="uploaded", name=None))
    job = world.store.jobs.get("uploaded")
    assert (job.spec.name, job.spec.dataset.source) == ("cats", f"{reference} (cats)")
    world.local.dataset_uploads.remove(reference.id)
    world.work_until_ended("uploaded")
    assert world.store.jobs.get("uploaded").outcome is Outcome.COMPLETED
    again = retry(world.station, "uploaded", new_id="again")
    assert again.job.spec.dataset.sha256 == job.spec.dataset.sha256
