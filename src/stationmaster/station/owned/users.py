"""Users, as one of them sees them: only themselves."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import Forbidden, NotFound
from stationmaster.model import Caller, Right, User
from stationmaster.station.owned.rights import require
from stationmaster.station.users import ListedUser, UserChanges, Users


class OwnedUsers:
    """Also for an administrator whose token may not manage: they see all users, and change at most themselves."""

    def __init__(self, caller: Caller, users: Users) -> None:
        self._caller = caller
        self._all = users

    def listed(self) -> Sequence[ListedUser]:
        return [one for one in self._all.listed() if self._sees(one.user.name)]

    def find(self, name: str) -> User:
        return self._all.find(self._seen(name))

    def add(self, name: str, values: UserChanges) -> User:
        require(self._caller, Right.MANAGE)
        return self._all.add(name, values)

    def change(self, name: str, changes: UserChanges) -> User:
        require(self._caller, Right.TRAIN)
        if self._seen(name) != self._caller.user:
            require(self._caller, Right.MANAGE)
        if changes.role is not None and not self._caller.may(Right.MANAGE):
            raise Forbidden("only administrators may change a role")
        return self._all.change(name, changes)

    def remove(self, name: str) -> None:
        self._seen(name)
        require(self._caller, Right.MANAGE)
        self._all.remove(name)

    def _sees(self, name: str) -> bool:
        return self._caller.sees_all or name == self._caller.user

    def _seen(self, name: str) -> str:
        if not self._sees(name):
            raise NotFound(f"there is no user {name}", hint="run `stationmaster users list` to see them")
        return name
