"""Tokens of the dataset's rows, and which of them are learned: answers, never what was asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

import datasets
import pyarrow
from rows import Chat, Text
from trl.chat_template_utils import get_training_chat_template, has_generation_markers

IGNORED = -100  # the loss skips these places
_AT_ONCE = 1_000  # rows that are turned into Arrow together: lists of Python numbers take ten times the room
_TOKENS = pyarrow.list_(pyarrow.int32())

#: For a tokenizer without a chat template: each message in a line of its own, each answer ended as a text is.
PLAIN_CHAT = (
    "{% for message in messages %}{% if message['role'] == 'assistant' %}assistant: {% generation %}"
    "{{ message['content'] or '' }}{{ eos_token }}{% endgeneration %}\n"
    "{% else %}{{ message['role'] }}: {{ message['content'] or '' }}\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)


class Example(NamedTuple):
    """A row as tokens; labels are the same tokens, IGNORED where nothing is learned."""

    tokens: list[int]
    labels: list[int]


class Dataset(NamedTuple):
    """The examples as TRL takes them, and what happened to the rows."""

    examples: datasets.Dataset
    tokens: int
    cut: int
    skipped: int


def tokenised(rows: Iterable[Text | Chat], tokenizer: Any, context: int) -> Dataset:
    """All rows, none longer than `context`; rows with no answer within it are skipped."""
    maker = ExampleMaker(tokenizer)
    tables, seen, tokens, cut, kept = [], 0, 0, 0, 0
    source = iter(rows)
    while chunk := list(islice(source, _AT_ONCE)):
        made = maker.examples(chunk)
        usable = [each for each in (within(example, context) for example in made) if each is not None]
        seen, kept = seen + len(made), kept + len(usable)
        cut += sum(len(each.tokens) > context for each in made)
        tokens += sum(len(each.tokens) for each in usable)
        tables.append(_table(usable))
    if not kept:
        raise ValueError(f"none of {seen} rows has anything to learn within {context} tokens")
    return Dataset(datasets.Dataset(pyarrow.concat_tables(tables)), tokens, cut, seen - kept)


def within(example: Example, context: int) -> Example | None:
    """Its first `context` tokens; None if nothing of them is learned."""
    cut = Example(example.tokens[:context], example.labels[:context])
    return cut if any(label != IGNORED for label in cut.labels[1:]) else None


def _table(examples: list[Example]) -> pyarrow.Table:
    columns = {"input_ids": [each.tokens for each in examples], "labels": [each.labels for each in examples]}
    return pyarrow.table({name: pyarrow.array(values, _TOKENS) for name, values in columns.items()})


class ExampleMaker:
    """Turns rows into examples with one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._end = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
        self._template = _chat_template(tokenizer)

    def examples(self, rows: list[Text | Chat]) -> list[Example]:
        """One for each row, in their order."""
        texts = iter(self._texts([row for row in rows if isinstance(row, Text)]))
        return [next(texts) if isinstance(row, Text) else self._chat(row) for row in rows]

    def _texts(self, rows: list[Text]) -> Iterator[Example]:
        # Each part by itself, as at inference, where the prompt's tokens are fixed before the answer is made.
        prompts = self._tokens([row.prompt for row in rows], special=True)
        alone = self._tokens([row.answer for row in rows if not row.prompt], special=True)
        after = self._tokens([row.answer for row in rows if row.prompt], special=False)
        for row, prompt in zip(rows, prompts, strict=True):
            before = self._without_end(prompt) if row.prompt else []
            learned = [*self._without_end(next(after if row.prompt else alone)), *self._end]
            yield Example([*before, *learned], [*[IGNORED] * len(before), *learned])

    def _tokens(self, texts: list[str], *, special: bool) -> Iterator[list[int]]:
        return iter(self._tokenizer(texts, add_special_tokens=special)["input_ids"] if texts else ())

    def _without_end(self, tokens: list[int]) -> list[int]:
        return tokens[:-1] if self._end and tokens[-1:] == self._end else tokens

    def _chat(self, row: Chat) -> Example:
        if has_generation_markers(self._template):
            found = self._rendered(row, row.messages, return_assistant_tokens_mask=True)
            tokens, learned = list(found["input_ids"]), list(found["assistant_masks"])
        else:
            tokens = list(self._rendered(row, row.messages)["input_ids"])
            learned = [0] * len(tokens)
            for begin, end in self._answers(row, tokens):
                learned[begin:end] = [1] * (end - begin)
        labels = [token if is_learned else IGNORED for token, is_learned in zip(tokens, learned, strict=True)]
        return Example(tokens, labels)

    def _answers(self, row: Chat, tokens: list[int]) -> Iterator[tuple[int, int]]:
        """Where each answer lies, for a template that does not say it: what it adds to the messages before.

        An answer that the template renders differently once messages follow it is not learned.
        """
        for number, message in enumerate(row.messages):
            if message.get("role") == "assistant":
                before = self._rendered(row, row.messages[:number], add_generation_prompt=True)["input_ids"]
                after = self._rendered(row, row.messages[: number + 1])["input_ids"]
                yield _common(before, tokens), _common(after, tokens)

    def _rendered(self, row: Chat, messages: list[dict[str, Any]], **how: bool) -> Any:
        return self._tokenizer.apply_chat_template(
            messages, chat_template=self._template, tools=row.tools, tokenize=True, return_dict=True, **how
        )


def _chat_template(tokenizer: Any) -> str:
    """The tokenizer's own, with marks around the assistant's words where TRL knows how to put them."""
    if not tokenizer.chat_template:
        return PLAIN_CHAT
    try:
        return str(get_training_chat_template(tokenizer) or tokenizer.get_chat_template())
    except ValueError:  # a template that TRL does not know
        return str(tokenizer.get_chat_template())


def _common(first: list[int], second: list[int]) -> int:
    """How many tokens two lists have in common at their beginning."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((number for number, (one, other) in pairs if one != other), min(len(first), len(second)))
