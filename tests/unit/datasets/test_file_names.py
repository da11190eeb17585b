from __future__ import annotations

import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.datasets.file_names import check_names, safe_path
from stationmaster.datasets.tree import TreeEntry, TreeEntryKind, shown

# Any name that a Linux disk can hold, broken bytes included.
NAMES = (
    st.binary(min_size=1, max_size=250)
    .map(lambda raw: os.fsdecode(raw.replace(b"\0", b"_")))
    .filter(lambda path: all(part not in ("", ".", "..") for part in path.split("/")))
)


def entry(path: str) -> TreeEntry:
    return TreeEntry(path=path, kind=TreeEntryKind.FILE, source=path)


def codes(*paths: str) -> list[str]:
    return [problem.code for problem in check_names([entry(path) for path in paths])]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("it's.png", "name_unsafe"),
        ('say "cheese".png', "name_unsafe"),
        ("$(reboot).png", "name_unsafe"),
        ("`reboot`.png", "name_unsafe"),
        ("a;b.png", "name_unsafe"),
        ("-rf.png", "name_unsafe"),
        ("right\u202eto-left.png", "name_unsafe"),
        ("sub $dir/a.png", "name_unsafe"),
        ("two\nlines.png", "name_control_character"),
        ("esc\x1b[31m.png", "name_control_character"),
        ("broken\udcff.png", "name_not_utf8"),
        ("cafe\u0301.png", "name_not_normalised"),
        ("x" * 210 + ".png", "name_too_long"),
    ],
)
def test_a_name_that_breaks_something_is_found(path: str, code: str) -> None:
    assert codes(path) == [code]


@pytest.mark.parametrize("path", ["a.png", "My Cat 01.png", "sub/dir/b-c_d.jpg", "猫.png", "café.png", "a,b+c@d.png"])
def test_an_ordinary_name_is_left_in_peace(path: str) -> None:
    assert codes(path) == []
    assert safe_path(path) == path


def test_two_names_that_read_the_same_are_an_error() -> None:
    assert "name_twin" in codes("caf\u00e9.png", "cafe\u0301.png")


def test_names_that_differ_in_case_only_are_a_warning() -> None:
    assert codes("Cat.png", "cat.png") == ["name_case_twin"]


@given(NAMES)
def test_a_safe_path_has_nothing_left_to_complain_about(path: str) -> None:
    safe = safe_path(path)
    assert codes(safe) == []
    assert safe_path(safe) == safe
    assert unicodedata.is_normalized("NFC", safe)
    assert safe.count("/") == path.count("/")
    assert all(part not in ("", ".", "..") for part in safe.split("/"))


@given(NAMES)
def test_what_is_shown_can_always_be_printed(path: str) -> None:
    assert shown(path).isprintable()
    shown(path).encode("utf-8")
