"""Home and the Hub: private repositories, uploads by the Hub's own client, everything read back before it counts."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest

from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.huggingface import HubClient, Licence
from stationmaster.errors import DeliveryBusy, DeliveryRefused
from tests.support.servers.hub_server import HUB_TOKEN, HubServer

REPO = "anna/cats-0a1b2c"
Answer = TypeVar("Answer")


def ask(
    hub: HubServer, question: Callable[[HubClient], Coroutine[Any, Any, Answer]], *, token: str = HUB_TOKEN
) -> Answer:
    """One conversation with a client of its own."""

    async def conversation() -> Answer:
        client = HubClient(url=hub.url, token=token, namespace=None, private=True)
        try:
            return await question(client)
        finally:
            await client.close()

    return asyncio.run(conversation())


def weights(folder: Path, size: int = 400_000) -> HubFile:
    path = folder / "cats.safetensors"
    path.write_bytes(os.urandom(size))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    return HubFile(name="cats.safetensors", size=size, sha256=sha256, path=str(path))


@pytest.fixture
def without_xet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_DISABLE_XET", "1")


def test_repositories_belong_to_the_tokens_owner(hub: HubServer) -> None:
    assert ask(hub, HubClient.namespace) == "anna"


def test_a_repository_is_made_private_and_making_it_again_is_fine(hub: HubServer) -> None:
    for _ in range(2):
        ask(hub, lambda client: client.ensure_repository(REPO))
    assert hub.repos["model", REPO].private


def test_a_public_repository_of_that_name_gets_nothing_private(hub: HubServer) -> None:
    hub.add_repo(REPO, private=False)
    with pytest.raises(DeliveryRefused, match="is public"):
        ask(hub, lambda client: client.ensure_repository(REPO))


@pytest.mark.usefixtures("without_xet")
def test_files_of_this_computer_are_uploaded_and_read_back(hub: HubServer, tmp_path: Path) -> None:
    hub.add_repo(REPO, private=True)
    files = [weights(tmp_path), HubFile.of_text("README.md", "# Cats\n")]
    ask(hub, lambda client: client.upload(REPO, files, message="a model"))
    ask(hub, lambda client: client.require(REPO, files))
    assert hub.content(REPO, "cats.safetensors") == (tmp_path / "cats.safetensors").read_bytes()
    assert hub.content(REPO, "README.md") == b"# Cats\n"


def test_an_upload_by_xet_is_read_back_too(hub: HubServer, tmp_path: Path) -> None:
    hub.add_repo(REPO, private=True)
    file = weights(tmp_path)
    ask(hub, lambda client: client.upload(REPO, [file], message="a model"))
    ask(hub, lambda client: client.require(REPO, [file]))
    assert hub.asked("POST /xet/v1/shards")


def test_other_content_under_the_name_does_not_count(hub: HubServer, tmp_path: Path) -> None:
    file = weights(tmp_path)
    hub.add_repo(REPO, {"cats.safetensors": os.urandom(file.size), "README.md": b"# Dogs\n"})
    with pytest.raises(DeliveryBusy, match="cats"):
        ask(hub, lambda client: client.require(REPO, [file]))
    with pytest.raises(DeliveryBusy, match="README"):
        ask(hub, lambda client: client.require(REPO, [HubFile.of_text("README.md", "# Cats\n")]))


@pytest.mark.usefixtures("without_xet")
@pytest.mark.parametrize(("status", "error"), [(403, DeliveryRefused), (429, DeliveryBusy), (503, DeliveryBusy)])
def test_what_the_hub_says_to_an_upload_is_understood(
    status: int, error: type[Exception], hub: HubServer, tmp_path: Path
) -> None:
    hub.add_repo(REPO, private=True)
    hub.refuse("POST .*/commit/", status, times=None, headers={"Retry-After": "7"})
    with pytest.raises(error) as raised:
        ask(hub, lambda client: client.upload(REPO, [HubFile.of_text("README.md", "x")], message="m"))
    assert HUB_TOKEN not in str(raised.value)
    if status == 429:
        assert isinstance(raised.value, DeliveryBusy)
        assert raised.value.retry_after_seconds == 7


@pytest.mark.parametrize("token", ["hf_wrong", "hf_reader"])
def test_a_token_that_may_not_write_is_refused_with_a_hint(token: str, hub: HubServer) -> None:
    hub.users["hf_reader"] = "anna"
    hub.read_only_tokens.add("hf_reader")
    with pytest.raises(DeliveryRefused) as raised:
        ask(hub, lambda client: client.ensure_repository(REPO), token=token)
    assert raised.value.hint is not None
    assert token not in str(raised.value)


def test_a_hub_that_does_not_answer_is_busy(hub: HubServer) -> None:
    hub.cut(".", times=None)
    with pytest.raises(DeliveryBusy):
        ask(hub, HubClient.namespace)


@pytest.mark.parametrize("document", [[], {"name": None}, "a page"])
def test_what_is_no_answer_of_the_hub_is_no_refusal(document: object, hub: HubServer) -> None:
    hub.refuse("GET /api/whoami", 200, document=document, times=None)
    hub.refuse("POST .*/paths-info/", 200, document=document, times=None)
    with pytest.raises(DeliveryBusy):
        ask(hub, lambda client: client.read_back(REPO, ["x"]))
    assert ask(hub, lambda client: client.licence_of("maker/base")) is None


def test_a_download_goes_on_where_it_was_cut_and_is_verified(hub: HubServer, tmp_path: Path) -> None:
    content = os.urandom(300_000)
    hub.add_repo(REPO, {"cats.safetensors": content}, private=True)
    (tmp_path / ".model.part").write_bytes(content[:100_000])
    address, sha256 = f"hf://{REPO}/cats.safetensors", hashlib.sha256(content).hexdigest()
    ask(hub, lambda client: client.download(address, tmp_path / "model", sha256=sha256, size=300_000))
    assert (tmp_path / "model").read_bytes() == content
    assert hub.asked("GET .*/resolve/")[0].headers["range"] == "bytes=100000-"
    with pytest.raises(DeliveryRefused, match="not the model"):
        ask(hub, lambda client: client.download(address, tmp_path / "model", sha256="0" * 64, size=300_000))


def test_a_range_of_a_file_is_read_and_no_more(hub: HubServer) -> None:
    content = os.urandom(300_000)
    hub.add_repo(REPO, {"my cats.safetensors": content}, private=True)
    address = f"hf://{REPO}/my cats.safetensors"
    assert ask(hub, lambda client: client.read_range(address, start=8, size=100)) == content[8:108]
    assert hub.asked("GET .*/resolve/")[0].headers["range"] == "bytes=8-107"
    assert ask(hub, lambda client: client.read_range(address, start=299_990, size=100)) == content[-10:]
    with pytest.raises(DeliveryRefused, match="416"):
        ask(hub, lambda client: client.read_range(address, start=300_000, size=1))


def test_a_server_that_sends_more_than_the_range_is_not_believed(hub: HubServer) -> None:
    hub.refuse("GET .*/resolve/", 200, document="x" * 300_000, times=None)
    address = f"hf://{REPO}/cats.safetensors"
    assert ask(hub, lambda client: client.read_range(address, start=0, size=100)) == b'"' + b"x" * 99
    with pytest.raises(DeliveryRefused, match="instead of a part"):
        ask(hub, lambda client: client.read_range(address, start=8, size=100))


def test_the_token_does_not_follow_a_redirect_to_another_host(hub: HubServer) -> None:
    with HubServer() as elsewhere:
        elsewhere.add_repo(REPO, {"cats.safetensors": b"0123456789"})
        hub.refuse(
            "GET .*/resolve/", 302, headers={"Location": f"{elsewhere.url}/{REPO}/resolve/main/cats.safetensors"}
        )
        address = f"hf://{REPO}/cats.safetensors"
        assert ask(hub, lambda client: client.read_range(address, start=2, size=3)) == b"234"
        (asked,) = elsewhere.asked("GET")
    assert "authorization" not in asked.headers
    assert hub.asked("GET .*/resolve/")[0].headers["authorization"] == f"Bearer {HUB_TOKEN}"


@pytest.mark.parametrize(("status", "error"), [(404, DeliveryRefused), (503, DeliveryBusy)])
def test_a_range_that_the_hub_does_not_give_is_an_error(status: int, error: type[Exception], hub: HubServer) -> None:
    hub.refuse("GET .*/resolve/", status)
    with pytest.raises(error):
        ask(hub, lambda client: client.read_range(f"hf://{REPO}/cats.safetensors", start=0, size=8))
    hub.cut("GET .*/resolve/")
    with pytest.raises(DeliveryBusy):
        ask(hub, lambda client: client.read_range(f"hf://{REPO}/cats.safetensors", start=0, size=8))


def test_a_base_models_licence_is_read_from_its_card(hub: HubServer) -> None:
    hub.add_repo("maker/base").card = {"license": "other", "license_name": "own", "license_link": "https://x"}
    found = ask(hub, lambda client: client.licence_of("maker/base"))
    assert found == Licence(license="other", license_name="own", license_link="https://x")
    assert ask(hub, lambda client: client.licence_of("maker/unknown")) is None
