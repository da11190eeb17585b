"""The files the plan declares as outputs: listed for every status, hashed for the inventory."""

from __future__ import annotations

import os
from typing import Any

from trackside.records import read_record, unless_unwritable, write_record
from trackside.root import Root
from trackside.steps.expected import matching_files
from trackside.steps.plan import Plan

MOST_FILES = 2000
_MODELS = ("checkpoint", "state")


def list_outputs(root: Root, plan: Plan) -> list[dict[str, Any]]:
    """Return every declared output that exists, once, by path; the first matching pattern gives the kind."""
    found: dict[str, dict[str, Any]] = {}
    for output in plan.outputs:
        for path in map(readable_name, matching_files(root, output.pattern)):
            relative = os.path.relpath(path, root.path)
            if relative not in found:
                _add(found, path, relative, output.kind)
    return [found[relative] for relative in sorted(found)]


def take_inventory(root: Root, plan: Plan) -> dict[str, Any]:
    """Return the declared outputs with their SHA-256, and how many were left out; unchanged files are not read again.

    Home takes no more than `MOST_FILES`. Where the hashes cannot be kept for the next time, `unwritten` says why.
    """
    from trackside.transfer.hashing import sha256_of_steady_file  # loads OpenSSL, which no other verb needs

    known = read_record(root.hashes) or {}
    found = list_outputs(root, plan)
    listed = sorted(most_wanted_first(found)[:MOST_FILES], key=lambda entry: entry["path"])
    fresh = {}
    for entry in listed:
        path = root.inside(entry["path"])
        mark = _mark(path)
        cached = known.get(entry["path"])
        if mark and cached and cached.get("mark") == mark:
            entry["sha256"] = cached["sha256"]
        else:
            entry["sha256"] = sha256_of_steady_file(path)
        if mark and entry["sha256"] and mark == _mark(path):
            fresh[entry["path"]] = {"mark": mark, "sha256": entry["sha256"]}
    problems: list[str] = []
    if fresh != known and os.path.isdir(root.own):
        with unless_unwritable(problems):
            write_record(root.hashes, fresh)
    return {"outputs": listed, "left_out": len(found) - len(listed), **({"unwritten": problems[0]} if problems else {})}


def most_wanted_first(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return models before everything else, and newer files before older ones."""
    return sorted(outputs, key=lambda entry: (entry["kind"] not in _MODELS, -entry["mtime"]))


def readable_name(path: str) -> str:
    """Return the path itself if it is valid UTF-8, else a readable one, hard-linked to the same file.

    Home stores paths in a database, as text. Where no link can be made the readable name is still reported, and
    downloading it fails visibly.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        readable = path.encode(errors="surrogateescape").decode(errors="backslashreplace").replace("\\x", "%")
        _link(path, readable)
        return readable
    return path


def _add(found: dict[str, dict[str, Any]], path: str, relative: str, kind: str) -> None:
    try:
        seen = os.stat(path)
    except OSError:
        return  # removed since it was listed
    found[relative] = {"path": relative, "kind": kind, "size": seen.st_size, "mtime": seen.st_mtime}


def _mark(path: str) -> list[int] | None:
    """Return values that change when the file does."""
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return [seen.st_size, seen.st_mtime_ns, seen.st_ino]


def _link(path: str, readable: str) -> None:
    if os.path.exists(readable) and os.path.samefile(path, readable):
        return
    fresh = f"{readable}.{os.getpid()}.part"
    try:
        os.makedirs(os.path.dirname(readable), exist_ok=True)
        os.link(path, fresh)
        os.replace(fresh, readable)  # atomic, also over the link to a file that has been replaced since
    except OSError:
        return
