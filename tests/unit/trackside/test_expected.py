"""Expected files count only when they are there and whole."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trackside.root import Root
from trackside.steps.decide import ExpectedFiles
from trackside.steps.expected import check_expected, is_whole, is_whole_safetensors, newest_whole


def safetensors(values: int = 4, **metadata: str) -> bytes:
    header = {"__metadata__": metadata, "w": {"dtype": "F32", "shape": [values], "data_offsets": [0, 4 * values]}}
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"\0" * 4 * values


def test_a_whole_file_opens(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    path.write_bytes(safetensors(step="100"))
    assert is_whole_safetensors(str(path))


@given(st.integers(0, len(safetensors()) - 1))
def test_a_file_cut_anywhere_does_not_open(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.mktemp("cut") / "m.safetensors"
    path.write_bytes(safetensors()[:length])
    assert not is_whole_safetensors(str(path))


@given(st.binary(max_size=60))
def test_no_bytes_whatever_break_the_check(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "m.safetensors"
    path.write_bytes(content)
    assert is_whole_safetensors(str(path)) in (True, False)


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ((), ExpectedFiles(present=True, whole=False)),
        (("output/good.safetensors",), ExpectedFiles(present=True, whole=True)),
        (("output/*.safetensors",), ExpectedFiles(present=True, whole=False)),
        (("output/note.txt",), ExpectedFiles(present=True, whole=True)),
        (("output/note.txt", "output/none"), ExpectedFiles(present=False, whole=False)),
        (("output/folder",), ExpectedFiles(present=False, whole=False)),
        (("**/deep.txt",), ExpectedFiles(present=True, whole=True)),
    ],
)
def test_what_is_there_of_the_expected_files(
    tmp_path: Path, patterns: tuple[str, ...], expected: ExpectedFiles
) -> None:
    root = tmp_path / "odd [name]*"
    (root / "output" / "folder").mkdir(parents=True)
    (root / "output" / "good.safetensors").write_bytes(safetensors())
    (root / "output" / "torn.safetensors").write_bytes(safetensors()[:-1])
    (root / "output" / "note.txt").write_text("x")
    (root / "output" / "folder" / "deep.txt").write_text("x")
    assert check_expected(Root(str(root)), patterns) == expected


@pytest.mark.parametrize(("text", "whole"), [('{"step": 3}', True), ('{"step": ', False), ("", False)])
def test_a_json_file_is_whole_when_it_can_be_read(tmp_path: Path, text: str, whole: bool) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    assert is_whole(str(path)) is whole
    assert not is_whole(str(tmp_path / "none.json"))


def test_the_newest_file_is_the_one_changed_last_of_those_that_are_whole(tmp_path: Path) -> None:
    root = Root(str(tmp_path))
    (tmp_path / "begun.bin").touch()
    assert newest_whole(root, "*") is None
    for age, (name, content) in enumerate(
        [("torn", safetensors()[:-1]), ("empty", b""), ("b", safetensors()), ("z", safetensors()), ("a", b"?")]
    ):
        path = tmp_path / f"{name}.safetensors"
        path.write_bytes(content)
        os.utime(path, (1000.0 - age, 1000.0 - age))
    assert newest_whole(root, "*.safetensors") == str(Path(root.path) / "b.safetensors")
