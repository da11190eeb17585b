"""A served installation with people in it: an administrator, two users and a viewer; one of the users has trained."""

from __future__ import annotations

from typing import Self

import httpx

from stationmaster.model import Right, Role
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.jobs.http_world import HttpWorld
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.submitting import submit

#: The people by what they are called here: the user whose token it is, and the token's rights.
PEOPLE: dict[str, tuple[str, frozenset[Right]]] = {
    "administrator": ("me", frozenset(Right)),
    "observer": ("me", frozenset({Right.READ})),
    "ann": ("ann", frozenset(Right)),
    "bob": ("bob", frozenset(Right)),
    "reader": ("ann", frozenset({Right.READ})),
    "viewer": ("vera", frozenset(Right)),
}

ROLES = {"ann": Role.USER, "bob": Role.USER, "vera": Role.VIEWER}

ANNS_JOB = "annsjob"


class PeopledWorld(HttpWorld):
    """`ann` owns the job `annsjob`, which has trained to its end."""

    def __enter__(self) -> Self:
        super().__enter__()
        self._clients: dict[str | None, httpx.Client] = {}
        for name, role in ROLES.items():
            self.local.users.add(name, UserChanges(inbox=True, role=role))
        self.tokens = {
            who: self.local.tokens.create(NewToken(name=who, user=user, rights=rights)).secret
            for who, (user, rights) in PEOPLE.items()
        }
        pictures = write_pictures(self.folder / "pictures")
        submit(self.local, self.request(pictures, id=ANNS_JOB, name="anns cats", owner="ann"))
        self.work_until_ended(ANNS_JOB)
        return self

    def __exit__(self, *about: object) -> None:
        for client in self._clients.values():
            client.close()
        super().__exit__(*about)

    def client(self, who: str | None) -> httpx.Client:
        """What this person's program uses; None: somebody without a token."""
        if who not in self._clients:
            headers = {} if who is None else {"Authorization": f"Bearer {self.tokens[who]}"}
            self._clients[who] = httpx.Client(base_url=self.urls[0], headers=headers, timeout=60.0, verify=False)
        return self._clients[who]
