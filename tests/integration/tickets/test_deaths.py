"""Home dies before or after any call to the bucket or the store: the next try ends as if nothing had happened."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, cast

import httpx
import pytest

from stationmaster.control.destinations.job_bucket import JobBucket, bucket_key, send_from_machine
from stationmaster.control.destinations.upload_tickets import UploadTickets
from stationmaster.delivery.artifact_store import BucketArtifacts
from stationmaster.model import OutputFile
from stationmaster.remote.host import Host
from stationmaster.store.store import Store
from stationmaster.store.tickets import TicketState
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job
from tests.support.servers.s3_servers import S3Server

CONTENT = b"weights" * 500
FILE = OutputFile(
    path="output/model.safetensors",
    kind="checkpoint",
    size=len(CONTENT),
    mtime=0.0,
    sha256=hashlib.sha256(CONTENT).hexdigest(),
)


class Dead(BaseException):
    """The process is gone: no handler of ours may see it."""


class Fate:
    """Counts calls, and ends the process before or after one of them."""

    def __init__(self, dies_at: int | None = None, *, after: bool = False) -> None:
        self.calls = 0
        self._dies_at = dies_at
        self._after = after

    def over(self, real: Any) -> Any:
        fate = self

        class Mortal:
            def __getattr__(self, name: str) -> Any:
                found = getattr(real, name)
                return fate._mortal(found) if callable(found) else found

        return Mortal()

    def _mortal(self, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            dies = self.calls == self._dies_at
            if dies and not self._after:
                raise Dead
            answer = function(*args, **kwargs)
            if dies:
                raise Dead
            return answer

        return call


class Machine:
    """Sends what it is told to, as trackside does."""

    async def carry_out(self, verb: str, order: Mapping[str, Any], *, further_seconds: float) -> dict[str, Any]:
        for request in order["requests"]:
            headers = {name: value for name, value in request["headers"].items() if name != "Content-Length"}
            httpx.put(request["url"], content=CONTENT, headers=headers, verify=False).raise_for_status()
        return {"ok": True, "sent": 1}


def job_bucket_of(real: JobBucket, store: Store, fate: Fate) -> JobBucket:
    bucket = fate.over(real.bucket)
    tickets = UploadTickets(fate.over(store.tickets), bucket)
    return JobBucket(bucket=bucket, artifacts=BucketArtifacts(bucket), tickets=tickets, threads=real.threads)


# Before a call there is what was there after the one before it.
@pytest.mark.parametrize(
    "after", [pytest.param(False, id="before", marks=pytest.mark.slow), pytest.param(True, id="after")]
)
@asynchronous
async def test_a_death_at_any_call_is_made_good(
    open_job_bucket: Any, rclone: S3Server, store: Store, after: bool
) -> None:
    real, machine = open_job_bucket(rclone), cast(Host, Machine())
    usual = Fate()
    await send_from_machine(FILE, job("usual", attempt=1), machine, job_bucket_of(real, store, usual))
    assert usual.calls > 8
    for dies_at in range(1, usual.calls + 1):
        mine = job(f"cats-{dies_at}", attempt=1)
        doomed = job_bucket_of(real, store, Fate(dies_at, after=after))
        with pytest.raises(Dead):
            await send_from_machine(FILE, mine, machine, doomed)
        await send_from_machine(FILE, mine, machine, job_bucket_of(real, store, Fate()))
        assert b"".join(real.bucket.read(bucket_key(mine, FILE.path))) == CONTENT, dies_at
        states = [ticket.state for ticket in store.tickets.of_job(mine.id)]
        assert states.count(TicketState.DONE) == 1, dies_at
        assert store.tickets.live() == [], dies_at
    real.tickets.clean_quarantine()
    assert not list(real.bucket.listed("quarantine/"))
