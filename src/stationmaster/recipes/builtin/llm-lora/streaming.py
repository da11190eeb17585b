"""Examples that are made while the training runs, by the processes that load its data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import datasets
from examples import Example, ExampleMaker, within
from rows import Place, read_row

Columns = dict[str, list[int]]

_OPEN_PACKS = 8  # more fill the packs better, and delay the first one
_FULL = 0.95  # of a pack; what is left holds hardly any row

_TOKENS = datasets.List(datasets.Value("int32"))


class Source(NamedTuple):
    """Rows, and how they become examples."""

    places: list[Place]
    tokenizer: Any
    context: int
    seed: int
    packing: bool


def streamed(source: Source, workers: int) -> datasets.IterableDataset:
    """Endless examples, shuffled anew in each pass over the rows; each worker makes those of its share."""
    shares = min(max(1, workers), len(source.places))
    columns = ["input_ids", "labels", *(["seq_lengths"] if source.packing else [])]
    return datasets.IterableDataset.from_generator(
        _columns,
        features=datasets.Features(dict.fromkeys(columns, _TOKENS)),
        gen_kwargs={"shares": list(range(shares)), "of": shares, "source": source},
    )


def _columns(shares: list[int], of: int, source: Source) -> Iterator[Columns]:
    """What the trainer takes; a worker gets one of the shares."""
    for share in shares:
        made = examples(source, share, of)
        yield from packed(made, source.context) if source.packing else map(_as_columns, made)


def examples(source: Source, share: int, of: int) -> Iterator[Example]:
    """Pass after pass over a share of the rows; raises ValueError if none of them has anything to learn."""
    maker = ExampleMaker(source.tokenizer)
    for number in count():
        order = list(range(len(source.places)))
        random.Random(f"{source.seed} {number}").shuffle(order)  # the same in every worker
        found = False
        for index in order[share::of]:
            (example,) = maker.examples([read_row(source.places[index])])
            if (usable := within(example, source.context)) is not None:
                found = True
                yield usable
        if not found:
            raise ValueError(f"no row has anything to learn within {source.context} tokens")


def packed(made: Iterator[Example], context: int) -> Iterator[Columns]:
    """Packs of at most `context` tokens: each example goes to the first open pack that has room for it."""
    packs: list[list[Example]] = []
    for example in made:
        pack = next((each for each in packs if _size(each) + len(example.tokens) <= context), None)
        if pack is None:
            if len(packs) == _OPEN_PACKS:
                fullest = max(packs, key=_size)
                packs.remove(fullest)
                yield _as_pack(fullest)
            packs.append(pack := [])
        pack.append(example)
        if _size(pack) >= _FULL * context:
            packs.remove(pack)
            yield _as_pack(pack)


def _size(pack: list[Example]) -> int:
    return sum(len(each.tokens) for each in pack)


def _as_pack(pack: list[Example]) -> Columns:
    return {
        "input_ids": [token for each in pack for token in each.tokens],
        "labels": [label for each in pack for label in each.labels],
        "seq_lengths": [len(each.tokens) for each in pack],
    }


def _as_columns(example: Example) -> Columns:
    return {"input_ids": example.tokens, "labels": example.labels}
