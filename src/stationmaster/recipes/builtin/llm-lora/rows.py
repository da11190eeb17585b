"""The rows of a text dataset, whatever their form: texts, prompts with answers, or chats."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

_SUFFIXES = (".jsonl", ".ndjson")
_SHAREGPT_ROLES = {"human": "user", "gpt": "assistant"}


class Text(NamedTuple):
    """What stands before, which is not learned, and what is learned after it."""

    prompt: str
    answer: str


class Chat(NamedTuple):
    """Messages, of which the assistant's are learned."""

    messages: list[dict[str, Any]]
    tools: list[Any] | None


def find_rows(folder: Path) -> Iterator[Text | Chat]:
    """Every row of every file, in order of name; raises ValueError that says which row has none of the known forms."""
    for file in _files(folder):
        with file.open(encoding="utf-8-sig", newline="\n") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield _row(json.loads(line), f"{file}:{number}")


class Place(NamedTuple):
    """Where a row is: its file, where its line begins there, and the line's number."""

    file: Path
    offset: int
    number: int


def find_places(folder: Path) -> list[Place]:
    """Where every row of every file is, in the order of find_rows; reads no row."""
    places = []
    for file in _files(folder):
        with file.open("rb") as lines:
            offset = 0
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    places.append(Place(file, offset, number))
                offset += len(line)
    return places


def read_row(place: Place) -> Text | Chat:
    """The row at a place; raises ValueError as find_rows does."""
    with place.file.open("rb") as lines:
        lines.seek(place.offset)
        return _row(json.loads(lines.readline().decode("utf-8-sig")), f"{place.file}:{place.number}")


def _files(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.suffix.lower() in _SUFFIXES and each.is_file())


def _row(row: Any, where: str) -> Text | Chat:
    if not isinstance(row, dict):
        raise ValueError(f"{where} is not an object")
    if isinstance(row.get("messages"), list):
        return Chat(row["messages"], row.get("tools"))
    if isinstance(row.get("conversations"), list):
        return Chat([_chat_message(message) for message in row["conversations"]], row.get("tools"))
    if "prompt" in row and "completion" in row:
        return Text(row["prompt"], row["completion"])
    if "instruction" in row and "output" in row:
        asked = "\n".join(part for part in (row["instruction"], row.get("input")) if part)
        return Text(f"{asked}\n", row["output"])
    if "text" in row:
        return Text("", row["text"])
    raise ValueError(f"{where} is none of the known kinds of row")


def _chat_message(message: dict[str, Any]) -> dict[str, Any]:
    """A message of a ShareGPT chat in the words that chat templates know."""
    if "from" not in message:
        return message
    role = str(message["from"])
    return {"role": _SHAREGPT_ROLES.get(role, role), "content": message.get("value")}
