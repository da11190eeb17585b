"""Who may do what: every role on every route, and what belongs to another does not exist."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from stationmaster.api.app import ROUTES
from stationmaster.model import RIGHTS, Right, Role
from tests.support.jobs.peopled_world import ANNS_JOB, PEOPLE, ROLES, PeopledWorld

#: Routes without a right: anybody may ask, and they tell nobody's secrets.
FOR_ANYBODY = {
    ("POST", "/api/session"),  # to sign in
    ("GET", "/api/session"),  # whether one is
    ("DELETE", "/api/session"),  # to sign out
}

#: Only administrators see these nouns, also where looking is all that is asked.
ADMINISTRATORS_SEE = re.compile(r"/api/(instances|checks)\b")

SAMPLE_VALUES = {"job": ANNS_JOB, "user": "ann", "recipe": "tiny-lora@1", "table": "StepMetric", "path": "nothing.bin"}


def api_routes() -> Iterator[tuple[str, APIRoute]]:
    for router in ROUTES:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path.startswith("/api"):
                for method in sorted((route.methods or set()) - {"HEAD"}):
                    yield method, route


def right_of(dependant: Dependant) -> Right | None:
    for each in dependant.dependencies:
        if (right := getattr(each.call, "right", None)) is not None:
            return Right(right)
    return None


GUARDED = [(method, route) for method, route in api_routes() if (method, route.path) not in FOR_ANYBODY]
LOOKS = [(method, route) for method, route in GUARDED if method == "GET"]
OF_A_JOB = [(method, route) for method, route in GUARDED if "{job}" in route.path]


def on(routes: list[tuple[str, APIRoute]]) -> pytest.MarkDecorator:
    """A test for each of these routes, named after it."""
    return pytest.mark.parametrize(
        ("method", "route"), routes, ids=[f"{method} {route.path}" for method, route in routes]
    )


def address(route: APIRoute, **values: str) -> str:
    known = {**SAMPLE_VALUES, **values}
    return re.sub(r"\{(\w+)(:\w+)?\}", lambda name: known.get(name[1], "none0"), route.path)


def ask(client: httpx.Client, method: str, path: str) -> httpx.Response:
    body: dict[str, object] | None = {} if method in ("POST", "PUT", "PATCH") else None
    return client.request(method, path, json=body, follow_redirects=False)


def rights_of(who: str) -> frozenset[Right]:
    user, rights = PEOPLE[who]
    return rights & RIGHTS[ROLES.get(user, Role.ADMIN)]


def test_every_route_states_the_right_that_it_needs() -> None:
    without = [f"{method} {route.path}" for method, route in GUARDED if right_of(route.dependant) is None]
    assert without == []


@on(GUARDED)
def test_nobody_is_answered_without_a_token(people: PeopledWorld, method: str, route: APIRoute) -> None:
    answer = ask(people.client(None), method, address(route))
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"] == "Bearer"


@on(GUARDED)
def test_a_role_without_the_right_is_refused_and_changes_nothing(
    people: PeopledWorld, method: str, route: APIRoute
) -> None:
    needed = right_of(route.dependant)
    assert needed is not None
    for who in PEOPLE:
        if needed in rights_of(who):
            continue
        answer = ask(people.client(who), method, address(route))
        assert answer.status_code == 403, (who, answer.text)
        assert answer.json()["hint"]


@on(LOOKS)
def test_who_may_look_is_answered(people: PeopledWorld, method: str, route: APIRoute) -> None:
    """Looking changes nothing, so it can be tried with everybody: no role that may look is refused."""
    needed = right_of(route.dependant)
    for who in PEOPLE:
        sees_all = PEOPLE[who][0] == "me"
        if needed not in rights_of(who):
            continue
        answer = ask(people.client(who), method, address(route))
        if ADMINISTRATORS_SEE.match(route.path) and not sees_all:
            assert answer.status_code in (403, 422), (who, answer.text)
        else:
            assert answer.status_code not in (401, 403, 500), (who, answer.text)


@on(OF_A_JOB)
@pytest.mark.parametrize("who", ["bob", "viewer"])
def test_another_s_job_answers_as_one_that_does_not_exist(
    people: PeopledWorld, method: str, route: APIRoute, who: str
) -> None:
    answers = []
    for name in (ANNS_JOB, "nosuchjob"):
        found = ask(people.client(who), method, address(route, job=name))
        answers.append((found.status_code, found.text.replace(name, "JOB")))
    assert answers[0] == answers[1]
    assert answers[0][0] in (403, 404, 422)
    assert "anns cats" not in answers[0][1]
