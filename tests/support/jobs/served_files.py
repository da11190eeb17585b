"""A served installation whose job `files` has whatever files a test gives it, without a training."""

from __future__ import annotations

import hashlib
import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlsplit

import httpx

from stationmaster.model import Checkpoint, Role
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from stationmaster.store.writes import Write
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.spine_values import spec

JOB = "files"


@dataclass(frozen=True, slots=True, kw_only=True)
class RawAnswer:
    """An answer as it came, to a request that no client has tidied up."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class FilesWorld(HttpWorld):
    """`ann` owns the job; `bob` is another user."""

    def __enter__(self) -> Self:
        super().__enter__()
        for name in ("ann", "bob"):
            self.local.users.add(name, UserChanges(inbox=True, role=Role.USER))
        self.tokens = {
            name: self.local.tokens.create(NewToken(name=name, user=name)).secret for name in ("me", "ann", "bob")
        }
        self.store.jobs.submit(spec(JOB, owner="ann"))
        (self._lease,) = self.store.leases.claim("w", limit=1, seconds=600)
        return self

    def put(self, path: str, data: bytes, *, attempt: int = 1, **fields: Any) -> Checkpoint:
        """Store a file of the job with this name on its machine."""
        sha256 = hashlib.sha256(data).hexdigest()
        folder = self.settings.home / "jobs" / JOB / "files" / f"attempt-{attempt}"
        place = folder / hashlib.sha256(path.encode()).hexdigest()[:16]
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)
        known = {"kind": "sample", "location": str(place), "verified_at": 1.0, "sha256": sha256, "size": len(data)}
        row = Checkpoint(attempt=attempt, path=path, **{**known, **fields})
        self.store.leases.record(self._lease, Write(job=self._lease.job, checkpoints=(row,)))
        return row

    def client(self, who: str = "me", **headers: str) -> httpx.Client:
        given = {"Authorization": f"Bearer {self.tokens[who]}", **headers}
        return httpx.Client(base_url=self.urls[0], headers=given, timeout=60.0, verify=False)

    def raw(self, target: str, *, who: str = "me", method: str = "GET", **headers: str) -> RawAnswer:
        """Send the request target exactly as it is."""
        address = urlsplit(self.urls[0])
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        try:
            connection.putrequest(method, target, skip_accept_encoding=True)
            connection.putheader("Authorization", f"Bearer {self.tokens[who]}")
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return RawAnswer(status=answer.status, headers=found, body=answer.read())
        finally:
            connection.close()


def address(path: str, *, below: str = "artifacts", job: str = JOB) -> str:
    return f"/api/jobs/{job}/{below}/{quote(path)}"
