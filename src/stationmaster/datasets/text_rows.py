"""Checks text datasets: JSON lines with texts, prompts and answers, or chats."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import BinaryIO

from stationmaster.datasets.report import DatasetProblem, Severity, error, warning
from stationmaster.datasets.rules import DatasetRules, RowFormat
from stationmaster.datasets.tree import TreeEntry, open_unchanged, shown
from stationmaster.errors import DatasetInvalid

ROW_SUFFIXES = frozenset({".jsonl", ".ndjson"})

_MAX_LINE_BYTES = 8_000_000
_MAX_SHOWN_PER_CODE = 20  # per file; one line counts the rest
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_SHAREGPT_ROLES = {"human": "user", "gpt": "assistant", "system": "system", "tool": "tool"}
_FORMS = '{"text": …}, {"prompt": …, "completion": …}, {"instruction": …, "output": …} or {"messages": […]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class RowCheck:
    rows: int
    problems: tuple[DatasetProblem, ...]


@dataclass(slots=True)
class _Progress:
    """What was found so far in all files."""

    rows: int = 0
    format: RowFormat | None = None
    seen: dict[bytes, str] = field(default_factory=dict)


def check_rows(files: Sequence[TreeEntry], rules: DatasetRules) -> RowCheck:
    """Check every rule about text rows, line by line."""
    progress = _Progress(format=rules.text_format)
    problems: list[DatasetProblem] = []
    for file in files:
        problems += _limited(file.path, _check_file(file, rules, progress))
    if progress.rows < rules.min_rows:
        text = f"{progress.rows} usable rows; the recipe needs at least {rules.min_rows}"
        problems.append(error("too_few_rows", "", text, "add rows to a .jsonl file, one JSON object per line"))
    return RowCheck(rows=progress.rows, problems=tuple(problems))


def _check_file(entry: TreeEntry, rules: DatasetRules, progress: _Progress) -> Iterator[DatasetProblem]:
    try:
        with open_unchanged(entry) as file:
            for number, line in _lines(file):
                problem = _check_line(line, f"{entry.path}:{number}", rules, progress)
                if problem is not None:
                    yield problem
    except DatasetInvalid as exc:
        yield error("unreadable", entry.path, str(exc), exc.hint or "")


def _lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    number = 0
    while line := file.readline(_MAX_LINE_BYTES + 1):
        number += 1
        yield number, line
        while line and not line.endswith(b"\n"):  # the rest of a line that is too long
            line = file.readline(_MAX_LINE_BYTES)


def _check_line(line: bytes, where: str, rules: DatasetRules, progress: _Progress) -> DatasetProblem | None:
    if len(line) > _MAX_LINE_BYTES:
        return error("row_too_large", where, f"over {_MAX_LINE_BYTES // 1_000_000} MB in one line", "split the row")
    try:
        text = line.removeprefix(codecs.BOM_UTF8).decode().strip()
        if not text:
            return warning("row_blank", where, "an empty line", "remove it")
        row = json.loads(text)
        length = sum(map(len, _texts(row)))
    except UnicodeDecodeError:
        return error("row_not_utf8", where, "the text is not UTF-8", "save the file as UTF-8")
    except (ValueError, RecursionError) as exc:
        reason = exc.msg if isinstance(exc, json.JSONDecodeError) else "it cannot be parsed"
        return error("row_not_json", where, f"not a JSON object: {reason}", "write one JSON object per line")
    problem = _check_row(row, where, progress)
    if problem is not None and problem.severity is Severity.ERROR:
        return problem
    progress.rows += 1
    return problem or _check_whole(text, length, where, rules, progress)


def _check_row(row: object, where: str, progress: _Progress) -> DatasetProblem | None:
    if not isinstance(row, dict) or (form := _form_of(row)) is None:
        return error("row_format", where, "unknown kind of row", f"write {_FORMS}")
    progress.format = progress.format or form
    if form is not progress.format:
        text = f"a {form.value} row; {progress.format.value} rows are expected"
        return error("row_format", where, text, "use one kind of row in the whole dataset")
    if form is RowFormat.CHAT:
        return _check_chat(row, where)
    return _check_fields(row, _fields(row, form), where)


def _check_whole(text: str, length: int, where: str, rules: DatasetRules, progress: _Progress) -> DatasetProblem | None:
    if length > rules.max_row_characters:
        text = f"{length:,} characters; text after {rules.max_row_characters:,} is cut off"
        return warning("row_too_long", where, text, "split it into several rows")
    key = hashlib.blake2b(text.encode(), digest_size=12).digest()
    original = progress.seen.setdefault(key, where)
    if original != where:
        return warning("row_duplicate", where, f"identical to {shown(original)}", "remove one of them")
    return None


def _form_of(row: Mapping[str, object]) -> RowFormat | None:
    if isinstance(row.get("messages"), list) or isinstance(row.get("conversations"), list):
        return RowFormat.CHAT
    if ("prompt" in row and "completion" in row) or ("instruction" in row and "output" in row):
        return RowFormat.PROMPT
    return RowFormat.TEXT if "text" in row else None


def _fields(row: Mapping[str, object], form: RowFormat) -> tuple[str, ...]:
    if form is RowFormat.TEXT:
        return ("text",)
    return ("prompt", "completion") if "prompt" in row and "completion" in row else ("instruction", "output")


def _check_fields(row: Mapping[str, object], names: tuple[str, ...], where: str) -> DatasetProblem | None:
    for name in names:
        value = row[name]
        if not isinstance(value, str):
            return error("row_not_text", where, f'"{name}" is not a text', "put it in quotes")
        if not value.strip():
            return error("row_empty", where, f'"{name}" is empty', "fill it in, or remove the row")
    return None


def _check_chat(row: Mapping[str, object], where: str) -> DatasetProblem | None:
    messages = row.get("messages", row.get("conversations"))
    roles: list[str] = []
    for message in messages if isinstance(messages, list) else ():
        role, content = _role_and_content(message)
        if role not in _ROLES:
            return error("chat_role", where, "a message has no known role", "use system, user, assistant or tool")
        if content is None and role != "assistant":  # an assistant's tool call has no content
            return error("row_not_text", where, f"the {role} message has no text", 'give it a "content"')
        if isinstance(content, str) and not content.strip() and role == "user":
            return error("row_empty", where, "a user message is empty", "fill it in, or remove the row")
        roles.append(role)
    if "assistant" not in roles:
        return error("chat_no_answer", where, "no assistant message to learn from", "add the answer")
    if roles[-1] != "assistant":
        return warning(
            "chat_open_end", where, "does not end with the assistant's answer", "add it, or remove the last messages"
        )
    if "system" in roles[1:]:
        return warning("chat_system_late", where, "the system message is not the first", "move it to the front")
    return None


def _role_and_content(message: object) -> tuple[str, object]:
    if not isinstance(message, dict):
        return "", None
    if "from" in message:
        return _SHAREGPT_ROLES.get(str(message["from"]), ""), message.get("value")
    role = message.get("role")
    return role if isinstance(role, str) else "", message.get("content")


def _texts(value: object) -> Iterator[str]:
    """Every text in a row, at any depth; json.loads limits the depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _limited(path: str, problems: Iterator[DatasetProblem]) -> Iterator[DatasetProblem]:
    """The first problems of each code, and one line for the rest: a bad export has the same problem in every row."""
    counts: Counter[str] = Counter()
    last: dict[str, DatasetProblem] = {}
    for problem in problems:
        counts[problem.code] += 1
        last[problem.code] = problem
        if counts[problem.code] <= _MAX_SHOWN_PER_CODE:
            yield problem
    for code, count in counts.items():
        if count > _MAX_SHOWN_PER_CODE:
            yield replace(last[code], path=path, message=f"{count - _MAX_SHOWN_PER_CODE} more rows like these")
