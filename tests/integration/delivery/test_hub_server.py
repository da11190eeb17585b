"""The test Hub itself, driven by the real `huggingface_hub`, so that what is tested against it would work outside."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

from tests.support.servers.hub_server import HUB_TOKEN, HUB_USER, HubServer


@pytest.fixture
def api(hub: HubServer) -> HfApi:
    return HfApi(endpoint=hub.url, token=HUB_TOKEN)


def test_a_token_is_known_by_its_owners_name(api: HfApi) -> None:
    assert api.whoami()["name"] == HUB_USER


def test_a_tokens_role_and_permissions_are_told_as_the_client_reads_them(hub: HubServer) -> None:
    hub.users |= {"hf_reader": HUB_USER, "hf_fine": HUB_USER}
    hub.read_only_tokens.add("hf_reader")
    hub.fine_grained["hf_fine"] = {"global": [], "scoped": [{"permissions": ["repo.content.read"]}]}
    told = [
        HfApi(endpoint=hub.url, token=token).whoami()["auth"]["accessToken"]
        for token in (HUB_TOKEN, "hf_reader", "hf_fine")
    ]
    assert [one["role"] for one in told] == ["write", "read", "fineGrained"]


def test_a_token_that_nobody_has_is_refused(hub: HubServer) -> None:
    with pytest.raises(HfHubHTTPError, match="Invalid"):
        HfApi(endpoint=hub.url, token="hf_wrong").whoami()


def test_files_of_a_dataset_are_listed_and_downloaded(hub: HubServer, api: HfApi, tmp_path: Path) -> None:
    picture = os.urandom(3000)
    hub.add_repo("anna/cats", {"a.png": picture, "a.txt": b"a cat", "more/b.txt": b"b"}, kind="dataset")
    listed = list(api.list_repo_tree("anna/cats", repo_type="dataset", recursive=True))
    assert {entry.path for entry in listed} == {"a.png", "a.txt", "more", "more/b.txt"}
    found = hf_hub_download(
        "anna/cats", "a.png", repo_type="dataset", endpoint=hub.url, token=HUB_TOKEN, local_dir=tmp_path
    )
    assert Path(found).read_bytes() == picture


def test_a_gated_repository_asks_strangers_to_log_in_and_others_to_ask_for_access(hub: HubServer) -> None:
    hub.add_repo("maker/base", {"model.safetensors": b"weights"}, granted=frozenset({"berta"}))
    hub.users["hf_berta"] = "berta"
    url = f"{hub.url}/maker/base/resolve/main/model.safetensors"
    said = [
        httpx.head(url, headers=headers, verify=False).status_code
        for headers in (
            {},
            {"Authorization": f"Bearer {HUB_TOKEN}"},
            {"Authorization": "Bearer hf_berta"},
        )
    ]
    assert said == [401, 403, 200]


def test_the_client_knows_gates_and_private_repositories(hub: HubServer, api: HfApi, tmp_path: Path) -> None:
    hub.add_repo("maker/base", {"config.json": b"{}"}, granted=frozenset())
    hub.add_repo("maker/hidden", {"config.json": b"{}"}, private=True)
    with pytest.raises(GatedRepoError):
        hf_hub_download("maker/base", "config.json", endpoint=hub.url, token=HUB_TOKEN, local_dir=tmp_path)
    with pytest.raises(RepositoryNotFoundError):
        api.model_info("maker/hidden")


def test_a_part_of_a_file_is_sent_when_only_that_is_asked_for(hub: HubServer) -> None:
    hub.add_repo("anna/m", {"m.safetensors": b"0123456789"})
    answer = httpx.get(f"{hub.url}/anna/m/resolve/main/m.safetensors", headers={"Range": "bytes=4-"}, verify=False)
    assert (answer.status_code, answer.content) == (206, b"456789")
    assert answer.headers["x-linked-size"] == "10"


def test_large_files_arrive_in_parts(hub: HubServer, tmp_path: Path) -> None:
    hub.multipart_above_bytes = 2**20
    weights = os.urandom(2_500_000)
    (tmp_path / "model.safetensors").write_bytes(weights)
    _upload_folder(hub, tmp_path)
    assert hub.content("anna/lora", "model.safetensors") == weights


def test_an_upload_survives_limits_errors_and_a_cut_line(hub: HubServer, tmp_path: Path) -> None:
    weights = os.urandom(2_000_000)
    (tmp_path / "model.safetensors").write_bytes(weights)
    hub.refuse("PUT /lfs/", 429, headers={"Retry-After": "0"})
    hub.refuse("PUT /lfs/", 503)
    hub.cut("PUT /lfs/", after_bytes=500_000)
    _upload_folder(hub, tmp_path)
    assert hub.content("anna/lora", "model.safetensors") == weights


def _upload_folder(hub: HubServer, folder: Path) -> None:
    """In a process of its own: the client reads its environment when it is imported."""
    environ = {**os.environ, **hub.environ, "HF_TOKEN": HUB_TOKEN, "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
    script = (
        "import sys; from huggingface_hub import HfApi; api = HfApi();"
        "api.create_repo('anna/lora', private=True, exist_ok=True);"
        "api.upload_folder(repo_id='anna/lora', folder_path=sys.argv[1])"
    )
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environ, check=True, timeout=120)
