"""A submission whose answer is lost on the way is asked again, and makes one job."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import httpx
import pytest

from stationmaster.errors import ServerError
from stationmaster.station.http.proposals import HttpProposals
from stationmaster.station.http.station import HttpStation
from stationmaster.station.tokens import NewToken
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import write_pictures


class LosingAnswers(httpx.BaseTransport):
    """Delivers every request; while `left` is above 0, the answers of submissions do not arrive."""

    def __init__(self) -> None:
        self.left = 0
        self.delivered = 0
        self._transport = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._transport.handle_request(request)
        if not request.url.path.endswith(("/submit", "/jobs")):
            return answer
        self.delivered += 1
        if not self.left:
            return answer
        self.left -= 1
        answer.read()
        raise httpx.ReadError("the connection was lost", request=request)

    def close(self) -> None:
        self._transport.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpWorld]:
    with HttpWorld(tmp_path_factory.mktemp("world")) as opened:
        write_pictures(opened.folder / "pictures")
        yield opened


@contextmanager
def losing(world: HttpWorld) -> Iterator[tuple[HttpProposals, LosingAnswers]]:
    way, token = LosingAnswers(), world.local.tokens.create(NewToken(name="lost", user="me")).secret
    with closing(HttpStation(world.urls[0], token, transport=way)) as station:
        yield station.proposals, way


def count_jobs(world: HttpWorld) -> int:
    return len(world.store.jobs.listed(with_ended=True))


def test_a_proposal_is_submitted_once_though_the_answer_was_lost(world: HttpWorld) -> None:
    before = count_jobs(world)
    with losing(world) as (proposals, way):
        proposal = proposals.propose(world.request(pictures(world)))
        way.left = 2
        found = proposals.submit(proposal.id)
        assert (found.job.id, way.delivered) == (proposal.job_id, 3)
    assert count_jobs(world) == before + 1


def test_a_keyed_request_is_repeated_and_one_without_a_key_is_not(world: HttpWorld) -> None:
    before = count_jobs(world)
    with losing(world) as (proposals, way):
        way.left = 1
        proposals.enqueue(world.request(pictures(world)), key="order-1")
        assert (way.delivered, count_jobs(world)) == (2, before + 1)
        way.left = 1
        with pytest.raises(ServerError, match="does not answer"):
            proposals.enqueue(world.request(pictures(world)))
        assert way.delivered == 3, "repeating it could make a second job"


def pictures(world: HttpWorld) -> Path:
    return world.folder / "pictures"
