"""Finds out who is asking, by the tokens and sessions in the store: every process of the service knows the same."""

from __future__ import annotations

import secrets

from stationmaster.errors import NotFound, NotSignedIn
from stationmaster.model import RIGHTS, Caller, Right
from stationmaster.station.audit import AuditEntry
from stationmaster.station.doorkeeper import OpenedSession, Session
from stationmaster.station.local.tokens import hashed, rights_named, role_of
from stationmaster.store.access import StoredAudit
from stationmaster.store.store import Store

_SESSION_SECONDS = 14 * 24 * 3600.0


class LocalDoorkeeper:
    def __init__(self, store: Store) -> None:
        self._store = store

    @property
    def installation(self) -> str:
        return self._store.installation_id

    def caller_of_token(self, secret: str) -> Caller:
        token = self._store.access.valid_token(hashed(secret))
        if token is None:
            raise NotSignedIn(
                "the token is not valid: it is unknown, has expired or was revoked",
                hint="create one on the server: stationmaster tokens create NAME",
            )
        return self._caller(token.owner, rights_named(token.rights), token.id)

    def session(self, secret: str) -> Session:
        found = self._store.access.session(hashed(secret))
        if found is None:
            raise NotSignedIn("the session is over", hint="sign in again: stationmaster tokens link")
        rights = frozenset(Right) if found.rights is None else rights_named(found.rights)
        caller = self._caller(found.owner, rights, found.token_id)
        return Session(caller=caller, csrf_token=found.csrf_token, expires_at=found.expires_at)

    def open_session(self, code: str) -> OpenedSession:
        user = self._store.access.use_code(hashed(code))
        token = None if user is not None else self._store.access.valid_token(hashed(code))
        owner = user if token is None else token.owner
        if owner is None:
            raise NotSignedIn(
                "this link or token is not valid: it was used, has expired or was revoked",
                hint="get another link: stationmaster tokens link",
            )
        secret = secrets.token_urlsafe(32)
        try:
            self._store.access.add_session(
                hashed(secret),
                owner,
                csrf_token=secrets.token_urlsafe(24),
                token_id=None if token is None else token.id,
                seconds=_SESSION_SECONDS,
            )
        except NotFound:
            raise _gone(owner) from None
        return OpenedSession(session=self.session(secret), secret=secret)

    def close_session(self, secret: str) -> None:
        self._store.access.remove_session(hashed(secret))

    def record(self, entry: AuditEntry) -> None:
        self._store.access.record(
            StoredAudit(
                at=entry.at,
                actor=entry.user,
                token_id=entry.token,
                action=entry.action,
                subject=entry.subject,
                status=entry.status,
                address=entry.address,
            )
        )

    def _caller(self, user: str, rights: frozenset[Right], token: str | None) -> Caller:
        try:
            role = role_of(self._store, user)
        except NotFound:
            raise _gone(user) from None
        return Caller(user=user, role=role, rights=rights & RIGHTS[role], token=token)


def _gone(user: str) -> NotSignedIn:
    return NotSignedIn(f"{user} is no longer a user", hint="ask an administrator")
