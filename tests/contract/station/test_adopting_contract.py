"""A training that was started by hand is proposed and becomes a job, whichever station is asked."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stationmaster.errors import IllegalMove, NotFound, UserError
from stationmaster.model import SINGLE_USER, Caller, Role
from stationmaster.model.callers import RIGHTS
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.owned.allowances import Allowances
from stationmaster.station.owned.station import OwnedStation
from stationmaster.station.proposals import RetryRequest
from stationmaster.station.users import UserChanges
from tests.contract.station.conftest import OpenWorld
from tests.support.jobs.hand_started import HandStarted, hand_started
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import here_and_over_http
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.servers.sshd import Sshd, running_sshd


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HandStarted]:
    with hand_started(tmp_path_factory.mktemp("training") / "run") as started:
        yield started


@pytest.fixture
def world(open_world: OpenWorld, sshd: Sshd, tmp_path: Path) -> LocalWorld:
    given = environ_with_hosts(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"), trusted=(sshd,))
    return open_world(**{name: value for name, value in given.items() if name.startswith("STATIONMASTER_SSH")})


def request_of(training: HandStarted, **changes: object) -> AdoptRequest:
    folder = training.folder
    asked = AdoptRequest(target="box", log=f"{folder}/logs/*.log", output=f"{folder}/out", pid_file=f"{folder}/pid")
    return replace(asked, **changes)  # type: ignore[arg-type]


@here_and_over_http
def test_what_was_found_is_what_is_proposed_and_queued(world: LocalWorld, training: HandStarted) -> None:
    proposals = world.station.proposals
    asked = request_of(training, id="mine", name="cats", stop_signal="INT", max_hours=5.0)
    checked = proposals.check(asked)
    assert checked.adopted is not None
    assert (checked.adopted.pid, checked.adopted.release, checked.max_seconds) == (training.pid, False, 5 * 3600)
    proposal = proposals.propose(asked)
    assert proposals.find(proposal.id).terms == proposal.terms
    other = proposals.propose(request_of(training, id="other"))
    job = proposals.submit(proposal.id).job
    assert job.spec.adopted is not None
    assert (job.spec.provider, job.spec.adopted.stop_signal) == ("adopted:box", "INT")
    with pytest.raises(IllegalMove, match="job mine watches this training already"):
        proposals.submit(other.id)
    with pytest.raises(IllegalMove, match="job mine watches this training already"):
        proposals.check(request_of(training))
    with pytest.raises(IllegalMove, match="started by hand"):
        proposals.check(RetryRequest(job="mine"))


def test_what_cannot_be_adopted_is_refused(world: LocalWorld, training: HandStarted) -> None:
    proposals = world.station.proposals
    for changes, said in (
        ({"log": "/nowhere/*"}, "no log on box matches"),
        ({"release": True}, "nothing is rented"),
        ({"target": "a b"}, "neither an instance nor a host"),
        ({"output": ""}, "output"),
    ):
        with pytest.raises(UserError, match=said):
            proposals.propose(request_of(training, **changes))


def test_users_adopt_only_where_the_operator_lets_them(
    open_local_world: OpenWorld, sshd: Sshd, training: HandStarted, tmp_path: Path
) -> None:
    given = environ_with_hosts(tmp_path, host_behind(sshd, "box", tmp_path / "jobs"), trusted=(sshd,))
    world = open_local_world(**{name: value for name, value in given.items() if name.startswith("STATIONMASTER_SSH")})
    world.local.users.add("ann", UserChanges())
    caller = Caller(user="ann", role=Role.USER, rights=RIGHTS[Role.USER])
    as_ann = OwnedStation(caller, world.station, Allowances(adopt_on=("box",)))
    asked = request_of(training, id="hers", owner=SINGLE_USER)
    job = as_ann.proposals.submit(as_ann.proposals.propose(asked).id).job
    assert job.spec.owner == "ann"
    for target in ("other", "123", f"{getpass.getuser()}@127.0.0.1:{sshd.port}"):
        with pytest.raises(UserError, match="only administrators"):
            as_ann.proposals.check(request_of(training, target=target))
    with pytest.raises(UserError, match="only administrators"):
        OwnedStation(caller, world.station).proposals.check(asked)
    viewer = Caller(user="bob", role=Role.VIEWER, rights=RIGHTS[Role.VIEWER])
    with pytest.raises(UserError):
        OwnedStation(viewer, world.station, Allowances(adopt_on=("box",))).proposals.check(asked)
    bob = Caller(user="bob", role=Role.USER, rights=RIGHTS[Role.USER])
    with pytest.raises(NotFound):
        OwnedStation(bob, world.station).jobs.find("hers")
