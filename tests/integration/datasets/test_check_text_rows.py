from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.datasets.rules import DatasetKind, DatasetRules, RowFormat
from stationmaster.datasets.validate import check

RULES = DatasetRules(kind=DatasetKind.TEXT, min_rows=3)
TEXTS = [{"text": f"sentence number {number}"} for number in range(5)]
CHAT = [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}]


def write(folder: Path, *rows: object, name: str = "train.jsonl") -> Path:
    lines = [row if isinstance(row, bytes) else json.dumps(row).encode() for row in rows]
    (folder / name).write_bytes(b"\n".join(lines) + b"\n")
    return folder


def found(folder: Path, rules: DatasetRules = RULES) -> set[tuple[str, str, str]]:
    return {(problem.severity.value, problem.code, problem.path) for problem in check(folder, rules).problems}


@pytest.mark.parametrize(
    "rows",
    [
        TEXTS,
        [{"prompt": f"q{number}", "completion": "a"} for number in range(3)],
        [{"instruction": f"q{number}", "input": "", "output": "a"} for number in range(3)],
        [{"messages": [{"role": "system", "content": str(number)}, *CHAT]} for number in range(3)],
        [
            {"conversations": [{"from": "human", "value": str(number)}, {"from": "gpt", "value": "a"}]}
            for number in range(3)
        ],
    ],
)
def test_every_known_kind_of_row_passes(tmp_path: Path, rows: list[dict[str, object]]) -> None:
    report = check(write(tmp_path, *rows), RULES)
    assert report.problems == ()
    assert report.rows == len(rows)


def test_too_few_rows_are_an_error(tmp_path: Path) -> None:
    assert found(write(tmp_path, *TEXTS[:2])) == {("error", "too_few_rows", "")}


@pytest.mark.parametrize(
    ("row", "severity", "code"),
    [
        (b"{not json", "error", "row_not_json"),
        (b"[" * 100_000, "error", "row_not_json"),
        (b'{"text": ' + b"9" * 5000 + b"}", "error", "row_not_json"),
        (b'{"text": "caf\xe9"}', "error", "row_not_utf8"),
        (b'"just a text"', "error", "row_format"),
        ({"body": "x"}, "error", "row_format"),
        ({"prompt": "x", "completion": "y"}, "error", "row_format"),
        ({"text": 7}, "error", "row_not_text"),
        ({"text": "  "}, "error", "row_empty"),
        (b'{"text": "' + b"x" * 8_000_001 + b'"}', "error", "row_too_large"),
        ({"text": "x" * 100_001}, "warning", "row_too_long"),
        (TEXTS[0], "warning", "row_duplicate"),
        (b"  ", "warning", "row_blank"),
    ],
)
def test_each_fault_of_a_row_is_found_with_its_line(tmp_path: Path, row: object, severity: str, code: str) -> None:
    assert found(write(tmp_path, *TEXTS, row, {"text": "the last"})) == {(severity, code, "train.jsonl:6")}


@pytest.mark.parametrize(
    ("messages", "severity", "code"),
    [
        ([], "error", "chat_no_answer"),
        (CHAT[:1], "error", "chat_no_answer"),
        (["hello"], "error", "chat_role"),
        ([{"role": "robot", "content": "x"}], "error", "chat_role"),
        ([{"role": "user"}, CHAT[1]], "error", "row_not_text"),
        ([{"role": "user", "content": " "}, CHAT[1]], "error", "row_empty"),
        ([*CHAT, CHAT[0]], "warning", "chat_open_end"),
        ([CHAT[0], {"role": "system", "content": "x"}, CHAT[1]], "warning", "chat_system_late"),
    ],
)
def test_each_fault_of_a_chat_is_found(tmp_path: Path, messages: list[object], severity: str, code: str) -> None:
    rows = [{"messages": [{"role": "user", "content": str(number)}, CHAT[1]]} for number in range(4)]
    assert found(write(tmp_path, *rows, {"messages": messages})) == {(severity, code, "train.jsonl:5")}


def test_the_recipe_may_ask_for_one_kind_of_row(tmp_path: Path) -> None:
    chats = DatasetRules(kind=DatasetKind.TEXT, min_rows=1, text_format=RowFormat.CHAT)
    codes = {code for _, code, _ in found(write(tmp_path, *TEXTS), chats)}
    assert codes == {"row_format", "too_few_rows"}


def test_the_same_fault_in_every_row_is_not_repeated_without_end(tmp_path: Path) -> None:
    report = check(write(tmp_path, *TEXTS, *[{"text": ""}] * 1000), RULES)
    assert len(report.errors) == 21
    assert report.errors[0].message == "980 more rows like these"
    assert report.rows == 5


def test_a_file_saved_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert found(write(tmp_path, b"\xef\xbb\xbf" + json.dumps(TEXTS[0]).encode(), *TEXTS[1:])) == set()


def test_files_that_are_not_rows_are_named(tmp_path: Path) -> None:
    write(tmp_path, *TEXTS)
    (tmp_path / "notes.md").write_text("x")
    assert found(tmp_path) == {("warning", "file_unused", "notes.md")}


KEYS = ["text", "prompt", "completion", "instruction", "output", "messages", "conversations", "role", "content", "from"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.lists(JSON.map(lambda row: json.dumps(row).encode()) | st.binary(max_size=50), max_size=10))
def test_no_row_can_make_the_check_fail_itself(rows: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        report = check(write(Path(temporary), *rows), RULES)
        assert report.rows <= sum(row.count(b"\n") + 1 for row in rows)
