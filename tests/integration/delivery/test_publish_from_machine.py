"""trackside sends files to the Hub: content is checked, cuts are resumed, limits waited out, the token never shown."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.machines.trackside_bench import Bench, bench, interpreters
from tests.support.servers.hub_server import HUB_TOKEN, HubServer
from trackside.hub_upload import publish
from trackside.root import Root
from trackside.web import Web

REPO = "anna/cats-0a1b2c"


@pytest.fixture(autouse=True)
def repo(hub: HubServer) -> None:
    hub.add_repo(REPO, private=True)


def order(hub: HubServer, machine: Bench, *paths: str, **changes: Any) -> bytes:
    files: list[dict[str, Any]] = []
    for path in paths:
        content = (machine.root / path).read_bytes()
        sha256 = hashlib.sha256(content).hexdigest()
        files.append({"name": Path(path).name, "path": path, "size": len(content), "sha256": sha256})
    given = {"endpoint": hub.url, "token": HUB_TOKEN, "repo": REPO, "message": "a model", "files": files}
    return json.dumps({**given, **changes}).encode()


def weights(machine: Bench, size: int = 1_500_000) -> bytes:
    content = os.urandom(size)
    (machine.root / "output").mkdir(exist_ok=True)
    (machine.root / "output" / "cats.safetensors").write_bytes(content)
    return content


def test_weights_arrive_whole_in_one_commit(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    answer = machine.call("publish", stdin=order(hub, machine, "output/cats.safetensors"))
    assert answer["ok"], answer
    assert hub.content(REPO, "cats.safetensors") == content
    assert hub.repos["model", REPO].head == answer["commit"]


def test_a_file_that_came_with_the_order_needs_none_on_the_machine(hub: HubServer, machine: Bench) -> None:
    card = "# Cats 🐈\n".encode()
    inline = {"name": "README.md", "content": base64.b64encode(card).decode()}
    assert machine.call("publish", stdin=order(hub, machine, files=[inline]))["ok"]
    assert hub.content(REPO, "README.md") == card


def test_publishing_again_sends_nothing_and_makes_no_commit(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    inline = {"name": "README.md", "content": base64.b64encode(b"# Cats\n").decode()}
    one = json.loads(order(hub, machine, "output/cats.safetensors"))["files"]
    wanted = order(hub, machine, files=[*one, inline])
    assert machine.call("publish", stdin=wanted)["commit"]
    commits = len(hub.repos["model", REPO].commits)
    assert machine.call("publish", stdin=wanted) == {
        "ok": True,
        "commit": None,
        "files": ["cats.safetensors", "README.md"],
    }
    assert len(hub.repos["model", REPO].commits) == commits
    assert len(hub.asked("PUT /lfs/")) == 1


def test_a_lost_commit_is_repeated_without_sending_the_weights_again(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    hub.refuse("POST .*/commit/", 403)
    wanted = order(hub, machine, "output/cats.safetensors")
    assert machine.call("publish", stdin=wanted)["refused"]
    assert machine.call("publish", stdin=wanted)["ok"]
    assert hub.content(REPO, "cats.safetensors") == content
    assert len(hub.asked("PUT /lfs/")) == 1


def test_large_weights_go_in_parts(hub: HubServer, machine: Bench) -> None:
    hub.multipart_above_bytes, hub.part_bytes = 1_000_000, 400_000
    content = weights(machine)
    assert machine.call("publish", stdin=order(hub, machine, "output/cats.safetensors"))["ok"]
    assert hub.content(REPO, "cats.safetensors") == content
    assert len(hub.asked(r"PUT /lfs/.*/\d+$")) == 4


def test_limits_errors_and_cut_lines_are_waited_out(hub: HubServer, machine: Bench) -> None:
    content = weights(machine)
    hub.refuse("POST .*/preupload/", 429, headers={"RateLimit": '"api";r=0;t=1'})
    hub.refuse("PUT /lfs/", 500)
    hub.cut("PUT /lfs/", after_bytes=300_000)
    hub.refuse("POST .*/commit/", 429, headers={"Retry-After": "1"})
    assert machine.call("publish", stdin=order(hub, machine, "output/cats.safetensors"))["ok"]
    assert hub.content(REPO, "cats.safetensors") == content


def test_a_limit_longer_than_our_patience_is_told_with_its_end(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    hub.refuse("POST .*/commit/", 429, headers={"Retry-After": "3600"})
    answer = machine.call("publish", stdin=order(hub, machine, "output/cats.safetensors"))
    assert (answer["ok"], answer["refused"], answer["retry_after"]) == (False, False, 3600)


@pytest.mark.parametrize(("token", "status"), [("hf_wrong", "401"), ("hf_reader", "403")])
def test_a_refusal_says_why_and_never_the_token(token: str, status: str, hub: HubServer, machine: Bench) -> None:
    hub.users["hf_reader"] = "anna"
    hub.read_only_tokens.add("hf_reader")
    weights(machine)
    done = machine.run("publish", stdin=order(hub, machine, "output/cats.safetensors", token=token))
    answer = json.loads(done.stdout)
    assert answer["refused"]
    assert status in answer["problem"]
    assert token.encode() not in done.stdout + done.stderr


def test_a_file_that_changed_since_is_refused(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    wanted = order(hub, machine, "output/cats.safetensors")
    weights(machine)  # as long, other bytes
    assert machine.call("publish", stdin=wanted)["refused"]
    assert hub.content(REPO, "cats.safetensors") is None


def test_a_hub_that_cannot_be_reached_is_busy_not_a_refusal(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    hub.cut(".", times=None)
    pauses: list[float] = []
    wanted = order(hub, machine, "output/cats.safetensors")
    answer = publish(Root(str(machine.root)), wanted, web=Web(sleep=pauses.append))
    assert (answer["ok"], answer["refused"]) == (False, False)
    assert pauses == [1, 2, 4, 8]


def test_an_answer_that_makes_no_sense_is_busy_not_a_crash(hub: HubServer, machine: Bench) -> None:
    weights(machine)
    hub.refuse("POST .*/preupload/", 200, document={"files": 7})
    answer = machine.call("publish", stdin=order(hub, machine, "output/cats.safetensors"))
    assert (answer["ok"], answer["refused"]) == (False, False)


def test_a_path_outside_of_the_job_is_refused(hub: HubServer, machine: Bench) -> None:
    stolen = {"name": "x", "path": "../../etc/passwd", "size": 1, "sha256": "0" * 64}
    assert machine.run("publish", stdin=order(hub, machine, files=[stolen])).returncode == 2


def test_nonsense_on_stdin_is_one_line_without_what_was_sent(machine: Bench) -> None:
    done = machine.run("publish", stdin=b'{"token": "hf_planted"')
    assert done.returncode == 2
    assert b"hf_planted" not in done.stderr


def test_every_python_from_3_8_on_can_publish(hub: HubServer, pyz: Path, tmp_path: Path) -> None:
    for number, python in enumerate(interpreters()):
        with bench(tmp_path / str(number), pyz=pyz, python=python) as made:
            content = weights(made, 1000)
            assert made.call("publish", stdin=order(hub, made, "output/cats.safetensors"))["ok"], python
            assert hub.content(REPO, "cats.safetensors") == content
