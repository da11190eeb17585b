"""Users in the store; their values are checked here, for every face."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from stationmaster.control.messages.recipients import OPERATORS
from stationmaster.errors import UserError
from stationmaster.model import SINGLE_USER, User
from stationmaster.near_names import did_you_mean
from stationmaster.notify.templates import PRIORITIES
from stationmaster.settings import (
    checked_discord_id,
    checked_email,
    checked_hours,
    checked_telegram_id,
    checked_zone,
)
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.wrong_names import no_such_user
from stationmaster.station.users import ListedUser, UserChanges, require_name

_CHECKS: Mapping[str, Callable[[str], str]] = {
    "telegram_id": checked_telegram_id,
    "discord_id": checked_discord_id,
    "email": checked_email,
    "quiet": checked_hours,
    "time_zone": checked_zone,
}


class LocalUsers:
    def __init__(self, installation: Installation) -> None:
        self._has_credits = installation.settings.billing.enabled
        self._store = installation.store
        self._users = installation.store.users
        self._ledger = installation.store.ledger

    def listed(self) -> Sequence[ListedUser]:
        return [self._listed(user) for user in self._users.listed()]

    def find(self, name: str) -> User:
        found = self._users.find(name)
        if found is None:
            raise no_such_user(self._store, name, added=True)
        return found

    def add(self, name: str, values: UserChanges) -> User:
        _require_free_name(name)
        if "/" in name or name in (".", ".."):
            raise UserError(f"{name} would be a path, not a name", hint="a user's name is part of addresses of the API")
        new = _changed(User(name=name), values)
        if not self._users.add(new):
            raise UserError(f"user {name} already exists", hint=f"to change them, run stationmaster users set {name} …")
        return new

    def change(self, name: str, changes: UserChanges) -> User:
        _require_free_name(name)
        changed = self._users.change(name, lambda user: _changed(user, changes))
        if changed is None:
            raise no_such_user(
                self._store, name, added=True, otherwise=f"to add them, run stationmaster users add {name} …"
            )
        return changed

    def remove(self, name: str) -> None:
        if self._users.find(name) is None:
            raise no_such_user(self._store, name, added=True)
        self._users.remove(name)

    def _listed(self, user: User) -> ListedUser:
        return ListedUser(user=user, balance=self._ledger.account(user.name).balance if self._has_credits else None)


def _require_free_name(name: str) -> None:
    if name in (SINGLE_USER, OPERATORS):
        raise UserError(
            f"{name} is a reserved name", hint="configure it with the settings notify.…: docs/reference/settings.md"
        )
    require_name(name)


def _changed(user: User, changes: UserChanges) -> User:
    for name, check in _CHECKS.items():
        if value := getattr(changes, name):
            _require_valid(name, value, check)
    _require_kinds(changes.mute + changes.unmute)
    return replace(
        user,
        telegram_id=_new_or_old(changes.telegram_id, user.telegram_id),
        discord_id=_new_or_old(changes.discord_id, user.discord_id),
        email=_new_or_old(changes.email, user.email),
        inbox=user.inbox if changes.inbox is None else changes.inbox,
        quiet=_new_or_old(changes.quiet, user.quiet),
        time_zone=changes.time_zone or user.time_zone,
        muted=tuple(sorted({*user.muted, *changes.mute} - {*changes.unmute})),
        role=changes.role or user.role,
    )


def _require_valid(name: str, value: str, check: Callable[[str], str]) -> None:
    try:
        check(value)
    except ValueError as problem:
        option = "quiet-hours" if name == "quiet" else name.replace("_", "-")
        raise UserError(f"--{option}: {problem}", hint=f"to remove it, pass --{option} ''") from None


def _require_kinds(names: Sequence[str]) -> None:
    for name in names:
        if name not in PRIORITIES:
            hint = did_you_mean(name, PRIORITIES) or f"use one of: {', '.join(PRIORITIES)}"
            raise UserError(f"{name} is not a kind of notification", hint=hint)


def _new_or_old(new: str | None, old: str | None) -> str | None:
    return old if new is None else new or None
