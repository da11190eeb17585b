"""Trainings that programs request: what is refused, what is answered, and what a user can reach with a request."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from stationmaster.errors import Forbidden
from stationmaster.station.datasets import BucketReference, HubReference, parse_reference
from stationmaster.station.http.connection import Connection
from stationmaster.station.http.dataset_upload import upload_dataset
from stationmaster.station.owned.allowances import Allowances
from stationmaster.station.proposals import TrainRequest
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import LocalWorld, write_pictures
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld
from tests.support.jobs.recipe_texts import small, write_recipe
from tests.support.trusted_settings import write_trusted


@dataclass(kw_only=True)
class Uploads:
    ann: str
    bob: str


@pytest.fixture(scope="module")
def uploads(people: PeopledWorld) -> Uploads:
    found = {}
    for who in ("ann", "bob"):
        with closing(Connection(people.urls[0], people.tokens[who])) as connection:
            found[who] = str(upload_dataset(connection, people.folder / "pictures"))
    return Uploads(**found)


def training(dataset: str, **fields: Any) -> dict[str, Any]:
    return {"recipe": "tiny-lora@1", "dataset": dataset, "parameters": {"seconds_per_step": 0}} | fields


def post(people: PeopledWorld, who: str, path: str, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return people.client(who).post(path, content=content, headers={"Content-Type": "application/json", **headers})


def count_jobs(people: PeopledWorld) -> int:
    return len(people.store.jobs.listed(with_ended=True, limit=500))


def test_a_program_that_trusts_its_limits_submits_at_once(people: PeopledWorld, uploads: Uploads) -> None:
    body = training(uploads.ann, name="at once", steps=5, max_price=0.5, max_spend="2.50", max_hours=1)
    answer = post(people, "ann", "/api/jobs", body)
    assert answer.status_code == 201
    found = answer.json()
    job = found["job"]
    assert (found["created"], job["name"], job["owner"], job["shown"]) == (True, "at once", "ann", "QUEUED")
    assert job["execution"] == {"provider": "loopback"}
    assert job["quote"]["hours"]["expected"] > 0
    assert job["quote"]["cost_usd"]["expected"] == 0
    assert (job["limits"]["max_hours"], job["limits"]["max_price_per_hour_usd"]) == (1, 0.5)
    assert [note for note in found["notes"] if "no worker is running" in note]


def test_the_seeds_names_of_recipe_and_provider_are_read(people: PeopledWorld, uploads: Uploads) -> None:
    body = {"tool": "tiny-lora@1", "dataset": uploads.ann, "execution": {"provider": "loopback"}}
    assert post(people, "ann", "/api/terms", body).json()["provider"] == "loopback"
    body = {"tool": "tiny-lora@1", "dataset": uploads.ann, "driver": "loopback"}
    assert post(people, "ann", "/api/terms", body).json()["recipe"] == "tiny-lora@1"


def test_a_repeated_request_is_answered_200_with_its_job(people: PeopledWorld, uploads: Uploads) -> None:
    before, body, key = count_jobs(people), training(uploads.ann), {"Idempotency-Key": "order-1"}
    first, again = (post(people, "ann", "/api/jobs", body, **key) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job"]["id"] == again.json()["job"]["id"]
    assert again.json()["created"] is False
    other = post(people, "ann", "/api/jobs", training(uploads.ann, name="other"), **key)
    assert (other.status_code, other.json()["type"]) == (422, "urn:stationmaster:problem:KeyReused")
    bobs = post(people, "bob", "/api/jobs", training(uploads.bob), **key)
    assert bobs.status_code == 201, "bob has keys of his own"
    assert count_jobs(people) == before + 2


def test_a_proposal_is_submitted_once_and_only_by_its_owner(people: PeopledWorld, uploads: Uploads) -> None:
    proposed = post(people, "ann", "/api/proposals", training(uploads.ann))
    assert proposed.status_code == 201
    proposal = proposed.json()
    address = f"/api/proposals/{proposal['id']}"
    bob = people.client("bob")
    answers = [bob.get(address), bob.post(f"{address}/submit"), bob.delete(address)]
    forged = bob.get("/api/proposals/0123456789abcdef")
    assert [each.status_code for each in answers] == [404] * 3
    texts = {each.text.replace(proposal["id"], "ID") for each in answers}
    assert texts == {forged.text.replace("0123456789abcdef", "ID")}
    first, again = (post(people, "ann", f"{address}/submit", b"") for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json()["job"]["id"] == again.json()["job"]["id"] == proposal["job"]
    assert first.json()["job"]["quote"] == proposal["terms"]["quote"], "what was shown is what is bought"


@pytest.mark.parametrize("forged", ["x", "%00", "%F0%9F%98%80", "0" * 200, "..", "%2e%2e%2fjobs", "%"])
def test_a_forged_proposal_is_not_found(people: PeopledWorld, forged: str) -> None:
    answer = post(people, "ann", f"/api/proposals/{forged}/submit", b"")
    assert answer.status_code in (400, 404, 405), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


REFUSED: list[tuple[dict[str, Any], int, str]] = [
    ({"dataset": "/etc/passwd"}, 400, "upload"),
    ({"dataset": "~root"}, 400, "upload"),
    ({"dataset": "pictures"}, 400, "upload"),
    ({"dataset": "file:///etc"}, 400, "upload"),
    ({"dataset": "http://127.0.0.1/x.zip"}, 400, "upload"),
    ({"dataset": "upload:../../home"}, 400, "upload:ID"),
    ({"dataset": "upload:" + "0" * 32}, 404, ""),
    ({"dataset": "x" * 3000}, 400, "longer than"),
    ({"recipe": "none@1"}, 404, "none@1"),
    ({"recipe": None}, 400, "no recipe"),
    ({"recipe": "x" * 300}, 422, "recipe"),
    ({"recipe": 7}, 422, "recipe"),
    ({"steps": "many"}, 400, "steps"),
    ({"steps": 10**400}, 400, "steps"),
    ({"steps": [[1]]}, 400, "steps"),
    ({"parameters": {"learning_rate": 1e999}}, 400, "learning_rate"),
    ({"parameters": {"wrong": 1}}, 400, "wrong"),
    ({"parameters": [1]}, 422, "parameters"),
    ({"max_price": "lots"}, 422, "max_price"),
    ({"max_price": 0}, 422, "max_price"),
    ({"max_spend": 10**300}, 422, "max_spend"),
    ({"max_spend": float("nan")}, 422, "max_spend"),
    ({"max_hours": 0}, 400, "max_hours"),
    ({"max_hours": float("nan")}, 400, "max_hours"),
    ({"max_hours": "2"}, 400, "max_hours"),
    ({"id": "Not An Id"}, 400, "Not An Id"),
    ({"name": "two\nlines"}, 400, "name"),
    ({"name": "\x00"}, 422, "name"),
    ({"name": "\ud800"}, 422, "name"),
    ({"\ud800": 1}, 422, ""),
    ({"monitoring": {"\ud800": "\x00"}}, 422, ""),
    ({"monitoring": {"unknown": 1}}, 400, "unknown"),
    ({"monitoring": {"webhook": "http://127.0.0.1"}}, 400, "webhook"),
    ({"execution": {"provider": "loopback", "url": "http://127.0.0.1"}}, 422, ""),
    ({"execution": []}, 422, ""),
    ({"reciped": 1}, 422, "reciped"),
    ({"provider": "mars"}, 403, "mars"),
    ({"provider": "ssh"}, 403, "ssh"),
    ({"account": "work"}, 403, "account"),
    ({"owner": "bob"}, 403, "others"),
    ({"dataset": "s3://pictures/cats"}, 403, "s3://pictures/cats"),
    ({"dataset": "hf://datasets/anna/cats"}, 403, "hf://datasets/anna/cats"),
    ({"id": ANNS_JOB + "x", "dataset": "upload:" + "f" * 32}, 404, ""),
]


@pytest.mark.parametrize(("change", "status", "words"), REFUSED, ids=[str(index) for index in range(len(REFUSED))])
def test_a_bad_request_of_a_user_is_one_problem_and_writes_nothing(
    people: PeopledWorld, uploads: Uploads, change: dict[str, Any], status: int, words: str
) -> None:
    before = count_jobs(people)
    for path in ("/api/terms", "/api/proposals", "/api/jobs"):
        answer = post(people, "ann", path, {**training(uploads.ann), **change})
        assert answer.status_code == status, answer.text
        problem = answer.json()
        assert words in problem["detail"] + str(problem["hint"])
        assert len(problem["detail"]) < 2500
    assert count_jobs(people) == before


def test_values_nested_without_end_are_refused(people: PeopledWorld) -> None:
    for depth in (30, 900, 5000):
        body = b'{"recipe": "tiny-lora@1", "parameters": {"steps": ' + b"[" * depth + b"]" * depth + b"}}"
        for path in ("/api/terms", "/api/estimates"):
            assert post(people, "ann", path, body).status_code in (400, 422)


def test_another_s_upload_does_not_exist(people: PeopledWorld, uploads: Uploads) -> None:
    theirs = post(people, "ann", "/api/terms", training(uploads.bob))
    nobodys = post(people, "ann", "/api/terms", training("upload:" + "0" * 32))
    assert (theirs.status_code, nobodys.status_code) == (404, 404)
    shown = theirs.json()["detail"].replace(uploads.bob.partition(":")[2], "0" * 32)
    assert shown == nobodys.json()["detail"]
    assert post(people, "administrator", "/api/terms", training(uploads.bob)).status_code == 200


def test_another_s_job_id_is_neither_answered_nor_overwritten(people: PeopledWorld, uploads: Uploads) -> None:
    for path in ("/api/terms", "/api/proposals", "/api/jobs"):
        answer = post(people, "bob", path, training(uploads.bob, id=ANNS_JOB))
        assert answer.status_code == 409
        assert "cats" not in answer.text
    proposal = post(people, "bob", "/api/proposals", training(uploads.bob, id="shared")).json()
    assert post(people, "ann", "/api/jobs", training(uploads.ann, id="shared")).status_code == 201
    late = post(people, "bob", f"/api/proposals/{proposal['id']}/submit", b"")
    assert (late.status_code, "shared cannot be used" in late.text) == (409, True)


def test_a_retry_is_proposed_with_its_terms(people: PeopledWorld) -> None:
    terms = post(people, "ann", f"/api/jobs/{ANNS_JOB}/retry/terms", {"resume": True})
    assert (terms.status_code, terms.json()["recipe"]) == (200, "tiny-lora@1")
    proposal = post(people, "ann", f"/api/jobs/{ANNS_JOB}/retry", {"id": "anns-second"})
    assert (proposal.status_code, proposal.json()["job"]) == (201, "anns-second")
    assert post(people, "bob", f"/api/jobs/{ANNS_JOB}/retry", {}).status_code == 404


def test_estimates_and_offers_are_of_the_providers_that_a_user_may_choose(people: PeopledWorld) -> None:
    ann = people.client("ann")
    assert ann.post("/api/estimates", json={"recipe": "tiny-lora@1"}).json()["provider"] == "loopback"
    assert ann.post("/api/estimates", json={"recipe": "tiny-lora@1", "provider": "vastai"}).status_code == 403
    asked = {"recipe": "tiny-lora@1"}
    assert ann.get("/api/offers", params=asked).json()["offers"][0]["provider"] == "loopback"
    assert ann.get("/api/offers", params={**asked, "provider": "vastai"}).status_code == 403
    assert ann.get("/api/offers", params={**asked, "account": "work"}).status_code == 403
    for hours in ("nan", "inf", "0", "-1", "x"):
        assert ann.get("/api/offers", params={**asked, "hours": hours}).status_code in (400, 422)


@contextmanager
def listening() -> Iterator[tuple[str, list[bytes]]]:
    """An address on this computer, and what was sent there."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as door:

        def answer() -> None:
            while True:
                try:
                    connection, _ = door.accept()
                except OSError:
                    return
                with connection:
                    heard.append(connection.recv(4096))

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        yield f"127.0.0.1:{door.getsockname()[1]}", heard
        door.shutdown(socket.SHUT_RDWR)
    thread.join()


def test_no_field_of_a_request_makes_the_server_connect_to_an_address(people: PeopledWorld, uploads: Uploads) -> None:
    ann = people.client("ann")
    with listening() as (address, heard):
        url, *others = f"http://{address}/x", address, f"//{address}/x", f"http://user@{address}/x"
        bodies = [training(uploads.ann, **{name: url}) for name in TEXTS]
        bodies.append(training(uploads.ann, monitoring={"url": url}))
        for recipe, name in text_parameters(people):
            bodies.append(training(uploads.ann, recipe=recipe, parameters={name: url}))
            ann.post("/api/estimates", json={"recipe": recipe, "parameters": {name: url}})
        for each in (url, *others):  # in every form, where a text may be an address
            bodies += [training(each), training(uploads.ann, recipe=each)]
            bodies += [training(uploads.ann, execution={"provider": each}), training(uploads.ann, provider=each)]
            bodies += [training(f"{scheme}{each}") for scheme in ("s3://", "hf://", "hf://datasets/", "upload:")]
            bodies.append(training(uploads.ann, recipe="llm-lora@2", parameters={"base_model": each}))
            ann.get("/api/offers", params={"recipe": each, "provider": each})
            ann.get(f"/api/recipes/{each}")
        for body in bodies:
            ann.post("/api/terms", json=body)
        assert heard == []
        with pytest.raises(httpx.HTTPError):
            httpx.get(f"http://{address}/", verify=False)
        assert len(heard) == 1, "the address does hear those who connect"


TEXTS = ("name", "trigger", "provider", "recipe", "account", "owner", "id")


def text_parameters(people: PeopledWorld) -> list[tuple[str, str]]:
    """Every parameter of a recipe that can be any text, such as the name of a model."""
    found = people.local.recipes.listed().recipes
    names = [(each.reference, name) for each in found for name, kind in each.parameters.items() if kind.type == "str"]
    assert ("llm-lora@2", "base_model") in names
    return names


@pytest.fixture
def gated_world(tmp_path: Path) -> Iterator[tuple[HttpWorld, list[bytes]]]:
    """A recipe whose parameter names a gated model, and a Hub that only listens."""
    gated = 'gated: [{repository: "{{ parameters.note }}"}]\noutputs:'
    dataset = ("resume:", "dataset: {min_images: 1}\nresume:")
    write_recipe(
        tmp_path / "recipes", "small", small(("outputs:", gated), dataset, ("steps:\n", "needs: {gpus: 0}\nsteps:\n"))
    )
    with listening() as (hub, heard):
        settings = f'recipes = ["{tmp_path / "recipes"}"]\n[hub]\nurl = "http://{hub}"\n'
        write_trusted(tmp_path / "stationmaster.toml", settings, home=tmp_path / "home")
        with HttpWorld(tmp_path) as world:
            yield world, heard


def test_a_model_s_name_leads_to_the_hub_of_the_settings_and_nowhere_else(
    gated_world: tuple[HttpWorld, list[bytes]], tmp_path: Path
) -> None:
    world, heard = gated_world
    pictures = write_pictures(tmp_path / "pictures")
    with listening() as (address, elsewhere):
        for model in (f"http://{address}/x", f"{address}/x", f"x@{address}/y", "../../admin", "a/b?x=1", "a/b#c"):
            request = TrainRequest(recipe="small@1", dataset=pictures, parameters={"note": model})
            world.station.proposals.check(request)
        assert (heard, elsewhere) == ([], [])
        world.station.proposals.check(TrainRequest(recipe="small@1", dataset=pictures, parameters={"note": "a/b"}))
        assert heard[0].startswith(b"HEAD /a/b/resolve/main/config.json HTTP/1.1\r\n")


ALLOWED = Allowances(
    default_provider="vastai", providers=("ssh",), datasets=("s3://pictures/shared/", "hf://datasets/anna")
)


@pytest.mark.parametrize(
    "dataset",
    ["s3://pictures/shared", "s3://pictures/shared/cats", "hf://datasets/anna/cats", "hf://datasets/anna/cats@main"],
)
def test_what_the_operator_allows_users_may_train_on(dataset: str) -> None:
    ALLOWED.require_dataset(remote(dataset))


@pytest.mark.parametrize(
    "dataset",
    [
        "s3://pictures",
        "s3://pictures/sharedelse",
        "s3://pictures/shared/../private",
        "s3://pictures/shared//x",
        "s3://pictures.shared/x",
        "hf://datasets/annabel/cats",
        "hf://datasets/bob/anna",
    ],
)
def test_nothing_beside_what_the_operator_allows_can_be_read(dataset: str) -> None:
    with pytest.raises(Forbidden):
        ALLOWED.require_dataset(remote(dataset))
    with pytest.raises(Forbidden):
        Allowances().require_dataset(remote(dataset))


def remote(text: str) -> BucketReference | HubReference:
    found = parse_reference(text)
    assert isinstance(found, BucketReference | HubReference)
    return found


def test_a_user_chooses_among_the_default_provider_and_those_that_are_allowed() -> None:
    for name in (None, "vastai", "vastai:default", "ssh"):
        ALLOWED.require_provider(name)
    for name in ("loopback", "simulator", "vastai:work", "SSH", ""):
        with pytest.raises(Forbidden):
            ALLOWED.require_provider(name)
    with pytest.raises(Forbidden, match="account"):
        ALLOWED.require_provider(None, "work")


def test_the_settings_name_what_users_may_choose(tmp_path: Path) -> None:
    settings = '[serve]\nuser_providers = ["ssh"]\nuser_datasets = ["s3://pictures/shared/"]\n'
    write_trusted(tmp_path / "stationmaster.toml", settings, home=tmp_path / "home")
    found = Allowances.of(LocalWorld(tmp_path).settings)
    assert found == Allowances(default_provider="loopback", providers=("ssh",), datasets=("s3://pictures/shared/",))
