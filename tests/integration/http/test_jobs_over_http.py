"""Jobs as other programs see them: the bare requests and answers of the API."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import httpx
import pytest

from stationmaster.model import Progress
from stationmaster.station.tokens import NewToken
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import put_trained


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    with HttpWorld(tmp_path_factory.mktemp("served")) as world:
        put_trained(world.store, "done", name="tom")
        put_trained(world.store, "spoilt", progress=Progress(step=5, total_steps=20, loss=math.nan))
        for number in range(5):
            world.store.jobs.submit(spec(f"queued{number}", owner="ann" if number % 2 else None))
        yield world


@pytest.fixture(scope="module")
def client(served: HttpWorld) -> Iterator[httpx.Client]:
    token = served.local.tokens.create(NewToken(name="program", user="me")).secret
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=served.urls[0], headers=headers, timeout=60.0, verify=False) as asking:
        yield asking


def test_a_job_has_the_names_that_other_programs_expect(client: httpx.Client) -> None:
    job = client.get("/api/jobs/tom").json()
    assert (job["id"], job["execution"]["provider"], job["providerState"]["activeStep"]) == ("done", "fake", None)
    assert [event["kind"] for event in job["progressLog"]] == ["submitted"]
    assert (job["cost_usd"], job["quote"]["cost_usd"]["expected"], job["quote"]["hours"]["high"]) == (0.36, 0.36, 2.0)
    assert client.get("/api/jobs/tom", params={"log": False}).json()["progressLog"] == []


def test_an_answer_that_the_client_has_is_not_sent_again(client: httpx.Client, served: HttpWorld) -> None:
    first = client.get("/api/jobs/done")
    tag = first.headers["ETag"]
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}'):
        again = client.get("/api/jobs/done", headers={"If-None-Match": known})
        assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", tag)
    assert client.get("/api/jobs/done", headers={"If-None-Match": '"other"'}).status_code == 200
    served.store.jobs.submit(spec("changing"))
    before = client.get("/api/jobs/changing").headers["ETag"]
    client.post("/api/jobs/changing/save")
    changed = client.get("/api/jobs/changing", headers={"If-None-Match": before})
    assert (changed.status_code, changed.json()["saves_asked"]) == (200, 1)


def test_pages_lead_from_one_to_the_next(client: httpx.Client) -> None:
    found: list[str] = []
    after: str | None = None
    while True:
        parameters: dict[str, str | int] = {"ended": "true", "limit": 3, **({"after": after} if after else {})}
        page = client.get("/api/jobs", params=parameters).json()
        found += [job["id"] for job in page["items"]]
        after = page["next"]
        if after is None:
            break
        assert len(page["items"]) == 3
    assert len(found) == len(set(found))
    assert {"done", "spoilt", "queued0", "queued4"} <= set(found)
    theirs = client.get("/api/jobs", params={"owner": "ann"}).json()
    assert [job["id"] for job in theirs["items"]] == ["queued3", "queued1"]
    ended = client.get("/api/jobs", params={"state": "ENDED"}).json()
    assert [job["id"] for job in ended["items"]] == ["spoilt", "done"]


def test_a_loss_that_is_no_number_is_still_json(client: httpx.Client) -> None:
    text = client.get("/api/jobs/spoilt").text
    job = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert job["progress"]["loss"] == "NaN"
    assert client.get("/api/compare", params={"jobs": ["done", "spoilt"]}).json()["jobs"][1]["last_loss"] == "NaN"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/jobs?limit=0", 422),
        ("/api/jobs?limit=99999999999999999999", 422),
        ("/api/jobs?state=POLISHING", 422),
        ("/api/jobs?after=nonsense", 400),
        ("/api/jobs?after=" + "x" * 501, 422),
        ("/api/jobs/" + "x" * 201, 422),
        ("/api/jobs/%00", 404),
        ("/api/jobs/%ED%A0%80", 404),
        ("/api/jobs/queued", 404),
        ("/api/jobs/tom?exact=true", 404),
        ("/api/compare?jobs=done", 400),
        ("/api/compare?jobs=done&jobs=tom", 400),
        ("/api/compare", 422),
        ("/api/costs?after=nonsense", 400),
        ("/api/costs/over-time?part=hour&start=1970-01-01T00:00:00Z", 400),
        ("/api/costs/over-time?end=0001-01-01T00:00:00", 400),
        ("/api/costs/over-time?part=year", 422),
        ("/api/overview?ended_limit=501", 422),
        ("/api/overview?today_from=now", 422),
        ("/api/jobs/nobody/costs", 404),
    ],
)
def test_what_cannot_be_answered_is_a_problem_in_words(client: httpx.Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    problem = answer.json()
    assert problem["detail"]
    assert problem["hint"]


def test_a_job_is_stopped_cancelled_and_removed(client: httpx.Client, served: HttpWorld) -> None:
    served.store.jobs.submit(spec("wanted"))
    kept = client.post("/api/jobs/wanted/cancel", json={"keep": True}).json()
    assert (kept["id"], kept["job"]["desired"]) == ("wanted", "CANCEL_KEEP")
    assert "nothing was rented" in kept["note"]
    assert client.post("/api/jobs/wanted/cancel").json()["job"]["desired"] == "CANCEL"
    assert client.post("/api/jobs/wanted/cancel", json={"kep": True}).status_code == 422
    assert client.post("/api/jobs/wanted/sample").status_code == 409
    assert client.delete("/api/jobs/wanted").json()["detail"].startswith("job wanted has not ended")
    put_trained(served.store, "gone")
    for verb in ("stop", "cancel", "save", "sample"):
        refused = client.post(f"/api/jobs/gone/{verb}")
        assert (refused.status_code, refused.json()["type"]) == (409, "urn:stationmaster:problem:AlreadyEnded")
    removed = client.delete("/api/jobs/gone")
    assert (removed.status_code, removed.content) == (204, b"")
    assert client.get("/api/jobs/gone").status_code == 404


def test_an_overview_that_has_not_changed_is_not_sent_again(client: httpx.Client) -> None:
    first = client.get("/api/overview", params={"today_from": "2020-01-01T00:00:00+01:00"})
    assert {row["id"] for row in first.json()["rows"]} >= {"done"}
    again = client.get(first.request.url, headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_costs_come_in_pages(client: httpx.Client) -> None:
    page = client.get("/api/costs", params={"limit": 1}).json()
    rest = client.get("/api/costs", params={"after": page["next"]}).json()
    jobs = [line["job"] for line in (*page["items"], *rest["items"])]
    assert (jobs[:1], len(jobs), len(set(jobs)), rest["next"]) == (["done"], len(set(jobs)), len(jobs), None)
    (line,) = client.get("/api/jobs/tom/costs").json()["items"]
    assert (line["amount_micros"], line["idle_micros"], line["source"]) == (360_000, 360_000, "estimate")
