"""Ids and names of jobs."""

from __future__ import annotations

import re
import secrets

from stationmaster.errors import UserError

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without letters that look like digits


def checked_id(job_id: str | None) -> str:
    """The given id, or a new one. It becomes part of paths and of machine labels, so few characters are allowed."""
    if job_id is None:
        return fresh_id()
    if not _ID.fullmatch(job_id):
        raise UserError(f"{job_id!r} is not a valid job id", hint="use up to 40 lower-case letters, digits and dashes")
    return job_id


def fresh_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def checked_name(name: str) -> str:
    """A printable name; code that uses it as a file name makes it safe."""
    if not name.strip() or len(name) > 120 or any(not letter.isprintable() for letter in name):
        raise UserError(f"{name!r} is not a valid job name", hint="use up to 120 printable characters")
    return name.strip()
