"""The lock files pin everything that `pyproject.toml` asks for, by hash, and name no place to fetch it from."""

from __future__ import annotations

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.programs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
OPTIONAL: dict[str, list[str]] = PROJECT["project"]["optional-dependencies"]


def pinned(lock: str) -> dict[str, list[Requirement]]:
    """The entries of a lock by name; one that differs by platform or Python has several."""
    entries: dict[str, list[Requirement]] = {}
    for entry in re.split(r"\n(?=\S)", (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8")):
        if not entry.startswith("#"):
            requirement = Requirement(entry.split("\\")[0].strip())
            assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), f"{requirement} has no hash"
            entries.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return entries


def asked_for(extra: str) -> list[Requirement]:
    """What the package and one of its extras need, those included that the extra is made of."""
    wanted: list[Requirement] = [Requirement(each) for each in PROJECT["project"]["dependencies"]]
    wanted += [Requirement(each) for each in PROJECT["dependency-groups"]["build"]]
    for each in map(Requirement, OPTIONAL[extra]):
        wanted += [deeper for inner in each.extras for deeper in asked_for(inner)] if is_ours(each) else [each]
    return wanted


def is_ours(requirement: Requirement) -> bool:
    return requirement.name == str(PROJECT["project"]["name"])


@pytest.mark.parametrize("lock", ["dev", "demo"])
def test_every_requirement_is_pinned_to_a_version_that_satisfies_it(lock: str) -> None:
    entries = pinned(lock)
    for wanted in asked_for(lock):
        name = canonicalize_name(wanted.name)
        assert name in entries, f"{wanted} is not in the lock: run make lock"
        for entry in entries[name]:
            (pin,) = entry.specifier
            assert pin.operator == "=="
            assert wanted.specifier.contains(pin.version), f"{wanted} is locked to {pin}: run make lock"


@pytest.mark.parametrize("lock", ["dev", "demo"])
def test_no_lock_says_where_to_fetch_from(lock: str) -> None:
    text = (ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"^(-i|-f|--index|--extra-index|--find-links|--trusted)", text, flags=re.MULTILINE)


def test_the_demo_runs_with_the_versions_that_are_tested() -> None:
    tested, shown = pinned("dev"), pinned("demo")
    for name, entries in shown.items():
        assert {str(entry.specifier) for entry in entries} == {str(entry.specifier) for entry in tested[name]}
