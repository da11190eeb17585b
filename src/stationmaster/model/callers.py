"""Who may do what: roles of users, rights of a role, and the caller of a request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from stationmaster.model.jobs import SINGLE_USER


class Right(StrEnum):
    READ = "read"  # see what is theirs
    TRAIN = "train"  # upload datasets, submit jobs, stop and remove them
    MANAGE = "manage"  # see and change everything, users and machines included


class Role(StrEnum):
    ADMIN = "admin"
    USER = "user"
    VIEWER = "viewer"


RIGHTS: Mapping[Role, frozenset[Right]] = {
    Role.ADMIN: frozenset(Right),
    Role.USER: frozenset({Right.READ, Right.TRAIN}),
    Role.VIEWER: frozenset({Right.READ}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who makes a request. The rights are those of their role, or fewer if their token has fewer."""

    user: str
    role: Role
    rights: frozenset[Right]
    token: str | None = None  # the id of the token; None: a browser's session, or this computer

    def may(self, right: Right) -> bool:
        return right in self.rights

    @property
    def sees_all(self) -> bool:
        """Whether the objects of all users are visible: administrators see them even with a token that only reads."""
        return self.role is Role.ADMIN

    def owns(self, owner: str | None) -> bool:
        """Whether what `owner` owns is theirs; jobs of the single user have no owner."""
        return (owner or SINGLE_USER) == self.user
