"""The checks that all nouns of an owned station share."""

from __future__ import annotations

from stationmaster.errors import Forbidden
from stationmaster.model import Caller, Right

_MEANINGS = {
    Right.READ: "may see nothing",
    Right.TRAIN: "may only look",
    Right.MANAGE: "is not an administrator",
}


def require(caller: Caller, right: Right) -> None:
    """Raises Forbidden if the caller lacks the right."""
    if not caller.may(right):
        is_token = caller.token is not None
        raise Forbidden(
            f"{'this token of ' if is_token else ''}{caller.user} {_MEANINGS[right]}",
            hint="an administrator can create a token with more rights: stationmaster tokens create",
        )
