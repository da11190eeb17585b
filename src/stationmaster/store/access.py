"""Who may use the HTTP service: tokens, links that sign a browser in, sessions, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.errors import NotFound, StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import SINGLE_USER
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.storable_text import is_storable
from stationmaster.store.tables import api_tokens, audit_log, browser_sessions, sign_in_codes, users

log = get_logger("stationmaster.store")

_USE_SECONDS = 60.0  # a token's last use is written at most this often


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredToken:
    id: str
    name: str
    owner: str
    rights: tuple[str, ...]
    created_at: float
    expires_at: float | None = None
    last_used_at: float | None = None
    revoked_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    owner: str
    token_id: str | None
    rights: tuple[str, ...] | None  # of the token that opened it; None: all of the user's role
    csrf_token: str
    expires_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAudit:
    at: float
    actor: str | None
    token_id: str | None
    action: str
    subject: str | None
    status: int
    address: str | None
    id: int | None = None


class AccessRows:
    def __init__(self, database: Database) -> None:
        self._database = database

    def add_token(
        self, token_id: str, *, secret_sha256: str, name: str, owner: str, rights: Sequence[str], seconds: float | None
    ) -> StoredToken:
        """Raises NotFound for a user who does not exist."""
        with self._database.write() as connection:
            require_user(connection, owner)
            now = self._now(connection)
            row = {
                "id": token_id,
                "secret_sha256": secret_sha256,
                "name": name,
                "owner": owner,
                "rights": dumps(list(rights)),
                "created_at": now,
                "expires_at": None if seconds is None else now + seconds,
            }
            connection.execute(api_tokens.insert().values(**row))
        return self.token(token_id)

    def token(self, token_id: str) -> StoredToken:
        """Raises NotFound."""
        row = None
        if is_storable(token_id):
            query = sa.select(api_tokens).where(api_tokens.c.id == token_id)
            with self._database.read() as connection:
                row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise NotFound(f"there is no token {token_id}", hint="run `stationmaster tokens list` to see them")
        return _token(row)

    def tokens(self, owner: str | None = None) -> list[StoredToken]:
        """Newest first."""
        query = sa.select(api_tokens).order_by(api_tokens.c.created_at.desc(), api_tokens.c.id)
        if owner is not None:
            query = query.where(api_tokens.c.owner == owner)
        with self._database.read() as connection:
            return [_token(row) for row in connection.execute(query).mappings()]

    def valid_token(self, secret_sha256: str) -> StoredToken | None:
        """The token with this secret, unless it has expired or was revoked; its use is noted."""
        now = self._database.now
        query = sa.select(api_tokens, now.label("now")).where(
            api_tokens.c.secret_sha256 == secret_sha256, self._is_valid
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        if row["last_used_at"] is None or row["now"] - row["last_used_at"] > _USE_SECONDS:
            self._note_use(row["id"], row["now"])
        return _token(row)

    def _note_use(self, token_id: str, now: float) -> None:
        """Requests that come together write once; where nothing can be written, a request is answered all the same."""
        is_old = sa.or_(api_tokens.c.last_used_at.is_(None), api_tokens.c.last_used_at < now - _USE_SECONDS)
        used = api_tokens.update().where(api_tokens.c.id == token_id, is_old).values(last_used_at=now)
        try:
            with self._database.write() as connection:
                connection.execute(used)
        except StoreError as problem:
            log.warning("token.use_not_noted", token=token_id, problem=str(problem))

    @property
    def _is_valid(self) -> sa.ColumnElement[bool]:
        return sa.and_(
            api_tokens.c.revoked_at.is_(None),
            sa.or_(api_tokens.c.expires_at.is_(None), api_tokens.c.expires_at > self._database.now),
        )

    def revoke_token(self, token_id: str) -> StoredToken:
        """Refuse it from now on, and the sessions that it opened. Raises NotFound."""
        self.token(token_id)
        change = api_tokens.update().where(api_tokens.c.id == token_id, api_tokens.c.revoked_at.is_(None))
        with self._database.write() as connection:
            connection.execute(change.values(revoked_at=self._database.now))
            connection.execute(browser_sessions.delete().where(browser_sessions.c.token_id == token_id))
        return self.token(token_id)

    def add_code(self, code_sha256: str, owner: str, *, seconds: float) -> float:
        """Returns when it expires. Raises NotFound for a user who does not exist."""
        with self._database.write() as connection:
            require_user(connection, owner)
            connection.execute(sign_in_codes.delete().where(sign_in_codes.c.expires_at < self._database.now))
            expires_at = self._now(connection) + seconds
            row = {"code_sha256": code_sha256, "owner": owner, "expires_at": expires_at}
            connection.execute(sign_in_codes.insert().values(**row))
        return expires_at

    def use_code(self, code_sha256: str) -> str | None:
        """The user that the code signs in, once; None if it was used, has expired or never existed."""
        used = (
            sign_in_codes.delete()
            .where(sign_in_codes.c.code_sha256 == code_sha256)
            .returning(sign_in_codes.c.owner, (sign_in_codes.c.expires_at > self._database.now).label("valid"))
        )
        with self._database.write() as connection:
            row = connection.execute(used).one_or_none()
        return str(row.owner) if row is not None and row.valid else None

    def add_session(
        self, secret_sha256: str, owner: str, *, csrf_token: str, token_id: str | None, seconds: float
    ) -> None:
        """Raises NotFound for a user who does not exist."""
        with self._database.write() as connection:
            require_user(connection, owner)
            connection.execute(browser_sessions.delete().where(browser_sessions.c.expires_at < self._database.now))
            now = self._now(connection)
            row = {
                "secret_sha256": secret_sha256,
                "owner": owner,
                "token_id": token_id,
                "csrf_token": csrf_token,
                "created_at": now,
                "expires_at": now + seconds,
            }
            connection.execute(browser_sessions.insert().values(**row))

    def session(self, secret_sha256: str) -> StoredSession | None:
        """The session with this cookie, unless it is over; one that a token opened ends with the token."""
        query = (
            sa.select(browser_sessions, api_tokens.c.rights)
            .join_from(browser_sessions, api_tokens, browser_sessions.c.token_id == api_tokens.c.id, isouter=True)
            .where(
                browser_sessions.c.secret_sha256 == secret_sha256,
                browser_sessions.c.expires_at > self._database.now,
                sa.or_(browser_sessions.c.token_id.is_(None), sa.and_(api_tokens.c.id.is_not(None), self._is_valid)),
            )
        )
        with self._database.read() as connection:
            row = connection.execute(query).mappings().one_or_none()
        if row is None:
            return None
        return StoredSession(
            owner=row["owner"],
            token_id=row["token_id"],
            rights=None if row["token_id"] is None else tuple(loads(row["rights"])),
            csrf_token=row["csrf_token"],
            expires_at=row["expires_at"],
        )

    def remove_session(self, secret_sha256: str) -> None:
        with self._database.write() as connection:
            connection.execute(browser_sessions.delete().where(browser_sessions.c.secret_sha256 == secret_sha256))

    def _now(self, connection: Connection) -> float:
        return float(connection.execute(sa.select(self._database.now)).scalar_one())

    def record(self, entry: StoredAudit) -> None:
        row = {
            "at": self._database.now,
            "actor": entry.actor,
            "token_id": entry.token_id,
            "action": entry.action,
            "subject": entry.subject,
            "status": entry.status,
            "address": entry.address,
        }
        with self._database.write() as connection:
            connection.execute(audit_log.insert().values(row))

    def remove_old(self, *, audit_seconds: float) -> int:
        """Delete sessions and codes that have expired, and entries of the audit log older than this; how many."""
        now = self._database.now
        old = (
            browser_sessions.delete().where(browser_sessions.c.expires_at < now),
            sign_in_codes.delete().where(sign_in_codes.c.expires_at < now),
            audit_log.delete().where(audit_log.c.at < now - audit_seconds),
        )
        with self._database.write() as connection:
            return sum(connection.execute(each).rowcount for each in old)

    def audit(self, *, limit: int, before: int | None = None, actor: str | None = None) -> list[StoredAudit]:
        """Newest first."""
        query = sa.select(audit_log).order_by(audit_log.c.id.desc()).limit(limit)
        if before is not None:
            query = query.where(audit_log.c.id < before)
        if actor is not None:
            query = query.where(audit_log.c.actor == actor)
        with self._database.read() as connection:
            return [StoredAudit(**row) for row in connection.execute(query).mappings()]


def require_user(connection: Connection, name: str) -> None:
    """Raises NotFound, unless the user exists until the transaction ends: who was removed gets nothing new."""
    if name == SINGLE_USER:
        return
    query = sa.select(users.c.name).where(users.c.name == name).with_for_update(read=True)
    if connection.execute(query).first() is None:
        raise NotFound(f"there is no user {name}", hint="run `stationmaster users list` to see them")


def end_access(connection: Connection, owner: str, now: sa.ColumnElement[float]) -> None:
    """Revoke everything that lets in as this user, so that nothing of it lets in a later user of the same name."""
    of_user = api_tokens.update().where(api_tokens.c.owner == owner, api_tokens.c.revoked_at.is_(None))
    connection.execute(of_user.values(revoked_at=now))
    connection.execute(sign_in_codes.delete().where(sign_in_codes.c.owner == owner))
    connection.execute(browser_sessions.delete().where(browser_sessions.c.owner == owner))


def _token(row: RowMapping) -> StoredToken:
    return StoredToken(
        id=row["id"],
        name=row["name"],
        owner=row["owner"],
        rights=tuple(loads(row["rights"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
    )
