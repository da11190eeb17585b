"""The machine's file goes to the Hub: home asks and commits, the machine sends bytes to signed addresses alone."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from stationmaster.control.publishing.machine_source import MachineSource
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient
from stationmaster.delivery.signed_requests import Piece, SendResult, Source
from stationmaster.errors import DeliveryBusy, DeliveryRefused
from stationmaster.model import OutputFile
from stationmaster.remote.host import Host
from stationmaster.remote.local import LocalRemote
from tests.support.machines.recorded_remote import Recorded
from tests.support.machines.trackside_bench import Bench, bench, interpreters
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from trackside.root import Root
from trackside.transfer.signed_upload import upload
from trackside.transfer.web import Web

REPO = "anna/cats-0a1b2c"
PATH = "output/cats.safetensors"


@pytest.fixture(autouse=True)
def repo(hub: HubServer) -> None:
    hub.add_repo(REPO, private=True)


def weights(machine: Bench, size: int = 1_500_000, *, path: str = PATH) -> bytes:
    content = os.urandom(size)
    (machine.root / "output").mkdir(exist_ok=True)
    (machine.root / path).write_bytes(content)
    return content


def output(content: bytes, path: str = PATH) -> OutputFile:
    sha256 = hashlib.sha256(content).hexdigest()
    return OutputFile(path=path, kind="checkpoint", size=len(content), mtime=0.0, sha256=sha256)


def host_on(machine: Bench, kept: list[bytes] | None = None) -> Host:
    remote: Any = LocalRemote(root=machine.root, environment={"PATH": os.environ["PATH"]})
    return Host(remote if kept is None else Recorded(remote, kept), root=str(machine.root), python=machine.python)


def publish(
    hub: HubServer,
    machine: Bench,
    file: OutputFile,
    *,
    token: str = HUB_TOKEN,
    source: Source | None = None,
    kept: list[bytes] | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> HubFile:
    """One whole conversation, as of a worker that was just started."""

    async def conversation() -> HubFile:
        client = HubClient(url=hub.url, token=token, namespace=None, private=True, transport=transport)
        wanted = HubFile(name=Path(file.path).name, size=file.size, sha256=str(file.sha256))
        try:
            put = await client.put_from(
                REPO, wanted, source or MachineSource(file, host_on(machine, kept)), message="a model"
            )
            await client.require(REPO, [put])
        finally:
            await client.close()
        return put

    return asyncio.run(conversation())


def commits(hub: HubServer) -> int:
    return len(hub.repos["model", REPO].commits) - 1


def arrived(hub: HubServer) -> bytes | None:
    return hub.content(REPO, "cats.safetensors")


def test_weights_arrive_whole_in_one_commit_and_the_token_stays_home(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    kept: list[bytes] = []
    publish(hub, machine, output(content), kept=kept)
    assert (arrived(hub), commits(hub)) == (content, 1)
    assert b"X-Amz-Signature" in b"".join(kept), "the machine was given an address"
    assert HUB_TOKEN.encode() not in b"".join(kept)
    assert {request.user for request in hub.asked("POST .*/(preupload|commit|batch|verify)")} == {"anna"}


def test_publishing_again_sends_nothing_and_makes_no_commit(hub: HubServer, machine: Bench) -> None:
    file = output(weights(machine))
    for _ in range(2):
        publish(hub, machine, file)
    assert (commits(hub), len(hub.asked("PUT /lfs/"))) == (1, 1)


def test_a_lost_commit_is_repeated_without_sending_the_weights_again(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    hub.refuse("POST .*/commit/", 503)
    with pytest.raises(DeliveryBusy):
        publish(hub, machine, output(content))
    publish(hub, machine, output(content))
    assert (arrived(hub), len(hub.asked("PUT /lfs/"))) == (content, 1)


def test_large_weights_go_in_parts(hub: HubServer, machine: Bench) -> None:
    hub.multipart_above_bytes, hub.part_bytes = 1_000_000, 400_000
    content = weights(machine)
    publish(hub, machine, output(content))
    assert arrived(hub) == content
    assert len(hub.asked(r"PUT /lfs/.*/\d+$")) == 4


def test_addresses_that_expire_midway_are_asked_for_again_and_only_missing_parts_are_sent(
    hub: HubServer, machine: Bench
) -> None:
    hub.multipart_above_bytes, hub.part_bytes, hub.addresses_last = 1_000_000, 400_000, 3
    content = weights(machine)
    publish(hub, machine, output(content))
    assert arrived(hub) == content
    parts = [request.path.rpartition("/")[2] for request in hub.asked(r"PUT /lfs/.*/\d+$")]
    assert parts == ["1", "2", "3", "4", "4"], "the fourth was refused once, and nothing else was sent twice"
    assert len(hub.asked("POST .*/objects/batch")) == 2


def test_one_address_that_expires_is_asked_for_again(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    hub.refuse("PUT /lfs/", 403)
    publish(hub, machine, output(content))
    assert (arrived(hub), len(hub.asked("POST .*/objects/batch"))) == (content, 2)


def test_an_upload_that_the_hub_begins_anew_is_sent_anew(hub: HubServer, machine: Bench) -> None:
    hub.multipart_above_bytes, hub.part_bytes, hub.keeps_uploads = 1_000_000, 400_000, False
    hub.refuse("PUT /lfs/.*/3$", 403)
    content = weights(machine)
    publish(hub, machine, output(content))
    assert arrived(hub) == content
    parts = [request.path.rpartition("/")[2] for request in hub.asked(r"PUT /lfs/.*/\d+$")]
    assert parts == ["1", "2", "3", "1", "2", "3", "4"]


def test_addresses_that_never_last_long_enough_are_given_up(hub: HubServer, machine: Bench) -> None:
    hub.multipart_above_bytes, hub.part_bytes = 1_000_000, 400_000
    hub.keeps_uploads, hub.addresses_last = False, 2
    with pytest.raises(DeliveryRefused, match="expire before the upload is complete"):
        publish(hub, machine, output(weights(machine)))
    assert arrived(hub) is None


def test_a_store_that_always_refuses_is_a_refusal(hub: HubServer, machine: Bench) -> None:
    hub.refuse("PUT /lfs/", 403, times=None)
    with pytest.raises(DeliveryRefused, match="403"):
        publish(hub, machine, output(weights(machine)))
    assert len(hub.asked("POST .*/objects/batch")) == 2


def test_errors_and_cut_lines_are_waited_out_by_the_machine(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    hub.refuse("PUT /lfs/", 500)
    hub.cut("PUT /lfs/", after_bytes=300_000)
    publish(hub, machine, output(content))
    assert arrived(hub) == content


def test_a_limit_of_the_hubs_is_told_with_its_end(hub: HubServer, machine: Bench) -> None:
    hub.refuse("POST .*/preupload/", 429, headers={"RateLimit": '"api";r=0;t=7'})
    with pytest.raises(DeliveryBusy) as raised:
        publish(hub, machine, output(weights(machine)))
    assert raised.value.retry_after_seconds == 7


@pytest.mark.parametrize(("token", "status"), [("hf_wrong", "401"), ("hf_reader", "403")])
def test_a_refusal_says_why_and_never_the_token(token: str, status: str, hub: HubServer, machine: Bench) -> None:
    hub.users["hf_reader"] = "anna"
    hub.read_only_tokens.add("hf_reader")
    with pytest.raises(DeliveryRefused, match=status) as raised:
        publish(hub, machine, output(weights(machine)), token=token)
    assert token not in str(raised.value)


@pytest.mark.parametrize(
    ("extra", "transfer"),
    [({"actions": {"verify": {"href": "http://127.0.0.1:9/verify"}}}, None), ({}, "xet")],
)
def test_a_hub_that_takes_only_xet_gets_nothing_from_a_machine(
    extra: dict[str, Any], transfer: str | None, hub: HubServer, machine: Bench
) -> None:
    hub.batch_extra, hub.transfer = extra, transfer
    with pytest.raises(DeliveryRefused, match="only by its own transfer"):
        publish(hub, machine, output(weights(machine)))
    assert hub.asked("PUT") == []
    assert hub.asked("GET .*xet") == []
    (asked,) = hub.asked("POST .*/objects/batch")
    assert asked.document()["transfers"] == ["basic", "multipart"]


@pytest.mark.parametrize(
    "upload_action",
    [
        {"href": "http://127.0.0.1:9/x", "header": {"Authorization": "Bearer other"}},
        {"href": f"http://127.0.0.1:9/x?token={HUB_TOKEN}"},
    ],
)
def test_an_address_with_credentials_does_not_go_to_a_machine(
    upload_action: dict[str, Any], hub: HubServer, machine: Bench
) -> None:
    hub.batch_extra = {"actions": {"upload": upload_action}}
    kept: list[bytes] = []
    with pytest.raises(DeliveryRefused, match="not sent to a machine"):
        publish(hub, machine, output(weights(machine)), kept=kept)
    assert b"127.0.0.1:9" not in b"".join(kept)


def test_a_file_that_changed_since_is_refused(hub: HubServer, machine: Bench) -> None:
    file = output(weights(machine))
    weights(machine)  # as long, other bytes
    with pytest.raises(DeliveryRefused):
        publish(hub, machine, file)
    weights(machine, 1000)
    with pytest.raises(DeliveryRefused, match="1000 bytes"):
        publish(hub, machine, file)
    assert (arrived(hub), commits(hub)) == (None, 0)


class Liar:
    """A machine that says it has sent everything."""

    async def first_bytes(self, count: int) -> bytes:
        return b"x" * count

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> SendResult:
        return SendResult(etags=tuple('"made up"' for _ in pieces))


@pytest.mark.parametrize("multipart_above_bytes", [None, 1_000_000])
def test_a_machine_that_only_says_that_it_sent_the_file_is_not_believed(
    multipart_above_bytes: int | None, hub: HubServer, machine: Bench
) -> None:
    hub.multipart_above_bytes = multipart_above_bytes
    with pytest.raises(DeliveryRefused):
        publish(hub, machine, output(weights(machine)), source=Liar())
    assert commits(hub) == 0


class DiesAt(httpx.AsyncHTTPTransport):
    """Home's process, which dies before or after one of its calls."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.left = at

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self._pass()
        answer = await super().handle_async_request(request)
        await answer.aread()
        self._pass()
        return answer

    def _pass(self) -> None:
        if self.left == 0:
            raise Dead
        self.left -= 1


class Dead(BaseException):
    """Nobody may catch this and go on."""


@pytest.mark.parametrize("part_bytes", [pytest.param(None, marks=pytest.mark.slow), 400_000])
def test_home_may_die_before_and_after_every_call(part_bytes: int | None, hub: HubServer, machine: Bench) -> None:
    hub.multipart_above_bytes, hub.part_bytes = part_bytes, part_bytes or 1
    died = 0
    for at in range(40):
        content, before = weights(machine, 1_000_000), commits(hub)
        try:
            publish(hub, machine, output(content), transport=DiesAt(at))
        except Dead:
            died += 1
            publish(hub, machine, output(content))
        assert arrived(hub) == content, f"died at {at}"
        assert commits(hub) == before + 1, f"died at {at}"
        if died <= at:
            break
    assert died >= 12, "two for each: looking, preupload, batch, verify, commit, reading back"


def test_a_small_file_that_the_hub_wants_in_the_commit_is_read_by_home(hub: HubServer, machine: Bench) -> None:
    content = weights(machine, 3000, path="output/notes.txt")
    put = publish(hub, machine, output(content, "output/notes.txt"))
    assert put.content == hub.content(REPO, "notes.txt") == content
    publish(hub, machine, output(content, "output/notes.txt"))
    assert commits(hub) == 1
    large = weights(machine, 3_000_000, path="output/notes.txt")
    with pytest.raises(DeliveryRefused, match="too many"):
        publish(hub, machine, output(large, "output/notes.txt"))


def test_samples_and_cards_go_from_home_without_the_hubs_own_client(hub: HubServer, tmp_path: Path) -> None:
    picture = os.urandom(5000)
    (tmp_path / "a.png").write_bytes(picture)
    (tmp_path / "a.gif").write_bytes(picture)
    digest = hashlib.sha256(picture).hexdigest()
    files = [
        HubFile(name=f"samples/{name}", size=5000, sha256=digest, path=str(tmp_path / name))
        for name in ("a.png", "a.gif")
    ]

    async def conversation() -> None:
        client = HubClient(url=hub.url, token=HUB_TOKEN, namespace=None, private=True)
        for _ in range(2):
            await client.require(
                REPO, await client.put(REPO, [*files, HubFile.of_text("README.md", "# Cats")], message="m")
            )
        await client.close()

    asyncio.run(conversation())
    assert hub.content(REPO, "samples/a.png") == hub.content(REPO, "samples/a.gif") == picture
    assert hub.content(REPO, "README.md") == b"# Cats"
    assert commits(hub) == 1
    assert all("authorization" not in request.headers for request in hub.asked("PUT"))


@pytest.mark.parametrize("document", [{"files": 7}, [], {"files": [{"path": "other", "uploadMode": "lfs"}]}])
def test_an_answer_that_makes_no_sense_is_busy_not_a_crash(document: Any, hub: HubServer, machine: Bench) -> None:
    file = output(weights(machine))
    hub.refuse("POST .*/preupload/", 200, document=document)
    with pytest.raises(DeliveryBusy):
        publish(hub, machine, file)
    hub.refuse("POST .*/objects/batch", 200, document=document)
    with pytest.raises(DeliveryBusy):
        publish(hub, machine, file)


def order(hub: HubServer, machine: Bench, path: str = PATH) -> bytes:
    request = {"url": f"{hub.url}/nowhere", "headers": {"Content-Length": "1"}, "offset": 0, "size": 1}
    size = (machine.root / PATH).stat().st_size
    return json.dumps({"path": path, "size": size, "requests": [request]}).encode()


def test_a_store_that_cannot_be_reached_is_busy_not_a_refusal(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    hub.cut(".", times=None)
    pauses: list[float] = []
    answer = upload(Root(str(machine.root)), order(hub, machine), web=Web(sleep=pauses.append))
    assert (answer["ok"], answer["refused"], answer["etags"]) == (False, False, [])
    assert pauses == [1, 2, 4, 8]


def test_nothing_outside_of_the_job_is_read_or_sent(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    assert machine.run("upload", stdin=order(hub, machine, "../../etc/passwd")).returncode == 2
    assert machine.run("read", "../../etc/passwd").returncode == 2
    assert machine.run("read", "--bytes", "2000000", PATH).returncode == 2
    assert machine.run("read", "output/none").returncode == 1


def test_nonsense_on_stdin_is_one_line_without_what_was_sent(machine: Bench) -> None:
    done = machine.run("upload", stdin=b'{"requests": "https://planted"')
    assert done.returncode == 2
    assert b"planted" not in done.stderr


def test_every_python_from_3_8_on_can_send(hub: HubServer, pyz: Path, tmp_path: Path) -> None:
    for number, python in enumerate(interpreters()):
        with bench(tmp_path / str(number), pyz=pyz, python=python) as made:
            content = weights(made, 1000)
            publish(hub, made, output(content))
            assert arrived(hub) == content, python
