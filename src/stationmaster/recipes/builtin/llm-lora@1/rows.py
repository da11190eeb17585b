"""The rows of a text dataset, and what a model learns from each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_IGNORED = -100  # PyTorch's cross entropy leaves these places out


def find_rows(folder: Path) -> list[dict[str, Any]]:
    """Every row of every .jsonl file, in order of name; raises ValueError that says where a row is no object."""
    rows = []
    for file in sorted(folder.rglob("*.jsonl")):
        for number, line in enumerate(file.read_text(encoding="utf-8-sig").split("\n"), start=1):
            if not line.strip():
                continue
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError(f"{file}:{number} is not an object")
            rows.append(row)
    if not rows:
        raise ValueError(f"no rows in {folder}")
    return rows


def tokenised(row: dict[str, Any], tokenizer: Any, context: int) -> tuple[list[int], list[int]]:
    """Tokens, and the same with the prompt's places left out: only answers are learned."""
    prompt, answer = texts_of(row, tokenizer)
    ahead = tokenizer(prompt, add_special_tokens=bool(prompt))["input_ids"] if prompt else []
    learned = tokenizer(answer, add_special_tokens=not prompt)["input_ids"]
    if tokenizer.eos_token_id is not None and learned[-1:] != [tokenizer.eos_token_id]:
        learned = [*learned, tokenizer.eos_token_id]
    tokens = [*ahead, *learned][:context]
    return tokens, [*[_IGNORED] * len(ahead), *learned][:context]


def texts_of(row: dict[str, Any], tokenizer: Any) -> tuple[str, str]:
    """What stands before and what is to be learned."""
    if "messages" in row:
        return "", _conversation(row["messages"], tokenizer)
    if "completion" in row:
        return row["prompt"], row["completion"]
    if "output" in row:
        asked = "\n".join(part for part in (row["instruction"], row.get("input", "")) if part)
        return f"{asked}\n", row["output"]
    return "", row["text"]


def _conversation(messages: list[dict[str, str]], tokenizer: Any) -> str:
    if getattr(tokenizer, "chat_template", None):
        return str(tokenizer.apply_chat_template(messages, tokenize=False))
    return "\n".join(f"{message['role']}: {message['content']}" for message in messages)
