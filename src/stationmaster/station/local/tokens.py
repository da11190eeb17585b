"""Tokens and sign-in links of this installation; their secrets leave it once and are stored as hashes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Sequence

from stationmaster.durations import LONGEST_SECONDS
from stationmaster.errors import UserError
from stationmaster.model import RIGHTS, SINGLE_USER, Right, Role
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.wrong_names import no_such_user
from stationmaster.station.tokens import SIGN_IN_PATH, CreatedToken, NewToken, SignInLink, Token
from stationmaster.store.access import StoredToken
from stationmaster.store.store import Store

_PREFIX = "sm_"  # scanners for leaked secrets know tokens by their beginning
_LINK_SECONDS = 600.0
_LONGEST_NAME = 100
_EVERYWHERE = ("0.0.0.0", "::")


def hashed(secret: str) -> str:
    """A token is random and long, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def rights_named(names: Iterable[str]) -> frozenset[Right]:
    """The rights with these names, as they are stored."""
    return frozenset(Right(name) for name in names)


def role_of(store: Store, user: str) -> Role:
    """The role of a user; the single user of the settings is the administrator. Raises NotFound."""
    if user == SINGLE_USER:
        return Role.ADMIN
    found = store.users.find(user)
    if found is None:
        raise no_such_user(store, user, otherwise=f"to add them, run stationmaster users add {user}")
    return found.role


class LocalTokens:
    def __init__(self, installation: Installation) -> None:
        self._store = installation.store
        self._serve = installation.settings.serve

    def create(self, new: NewToken) -> CreatedToken:
        name = new.name.strip()
        if not name or len(name) > _LONGEST_NAME or not name.isprintable():
            raise UserError(
                f"a token's name has 1 to {_LONGEST_NAME} printable characters", hint="say what it is for: telegram bot"
            )
        if new.expires_in is not None and not 0 < new.expires_in <= LONGEST_SECONDS:
            raise UserError(
                "expires: must be above zero, and at most a hundred years",
                hint="for example: 90d; leave it out if it never expires",
            )
        allowed = RIGHTS[role_of(self._store, new.user)]
        secret = _PREFIX + secrets.token_urlsafe(32)
        stored = self._store.access.add_token(
            secrets.token_hex(6),
            secret_sha256=hashed(secret),
            name=name,
            owner=new.user,
            rights=sorted(_within(new, allowed)),
            seconds=new.expires_in,
        )
        return CreatedToken(token=_token(stored), secret=secret)

    def listed(self, user: str | None = None) -> Sequence[Token]:
        return [_token(one) for one in self._store.access.tokens(user)]

    def revoke(self, token_id: str) -> Token:
        return _token(self._store.access.revoke_token(token_id))

    def create_link(self, user: str) -> SignInLink:
        role_of(self._store, user)
        code = secrets.token_urlsafe(24)
        expires_at = self._store.access.add_code(hashed(code), user, seconds=_LINK_SECONDS)
        url = f"{self._address()}{SIGN_IN_PATH}#{code}"
        return SignInLink(code=code, user=user, url=url, expires_at=expires_at)

    def _address(self) -> str:
        """Where a browser reaches the service of this installation."""
        if self._serve.public_url is not None:
            return str(self._serve.public_url).rstrip("/")
        host = "127.0.0.1" if self._serve.host in _EVERYWHERE else self._serve.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self._serve.port}"


def _within(new: NewToken, allowed: frozenset[Right]) -> frozenset[Right]:
    """All rights, which is the default, means all that the role has. Raises UserError for others that it lacks."""
    wanted = allowed if new.rights == frozenset(Right) else new.rights
    if not wanted or not wanted <= allowed:
        raise UserError(
            f"{new.user} may not have these rights: {', '.join(sorted(wanted - allowed)) or 'none'}",
            hint=f"use some of: {', '.join(sorted(allowed))}",
        )
    return wanted


def _token(stored: StoredToken) -> Token:
    return Token(
        id=stored.id,
        name=stored.name,
        user=stored.owner,
        rights=rights_named(stored.rights),
        created_at=stored.created_at,
        expires_at=stored.expires_at,
        last_used_at=stored.last_used_at,
        revoked_at=stored.revoked_at,
    )
