"""Ids and names of jobs."""

from __future__ import annotations

import re
import secrets

from stationmaster.errors import UserError

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # without letters that look like digits


def checked_id(job_id: str | None) -> str:
    """The id asked for, or a fresh one. It becomes part of paths and of machines' labels, so not any text will do."""
    if job_id is None:
        return fresh_id()
    if not _ID.fullmatch(job_id):
        raise UserError(f"{job_id!r} cannot be a job's id", hint="use up to 40 lower-case letters, digits and dashes")
    return job_id


def fresh_id() -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(8))


def checked_name(name: str) -> str:
    """A name people can read; what becomes a file name is made safe where it does."""
    if not name.strip() or len(name) > 120 or any(not letter.isprintable() for letter in name):
        raise UserError(f"{name!r} cannot be a job's name", hint="use up to 120 printable characters")
    return name.strip()
