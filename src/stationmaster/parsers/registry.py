"""The trainers that Stationmaster can read. A new one is a new file and a line here."""

from __future__ import annotations

from functools import cache

from stationmaster.parsers import (
    ai_toolkit,
    diffusers,
    hf_trainer,
    iteration_logs,
    keras,
    kohya,
    lightning,
    nanogpt,
    onetrainer,
    plain,
    tables,
    torchtune,
)
from stationmaster.parsers.family import Family

#: In the order in which they are asked; plain, which reads what is common to all, is asked last.
FAMILIES: tuple[Family, ...] = (
    ai_toolkit.FAMILY,
    kohya.FAMILY,
    onetrainer.FAMILY,
    torchtune.FAMILY,
    nanogpt.FAMILY,
    hf_trainer.FAMILY,
    diffusers.FAMILY,
    lightning.FAMILY,
    keras.FAMILY,
    iteration_logs.FAMILY,
    tables.FAMILY,
    plain.FAMILY,
)

AUTO = "auto"
_SIGNS = tuple((sign, family.name) for family in FAMILIES for sign in family.signs)
#: In lower case.
FAMILY_SIGNS = tuple(sign for sign, _ in _SIGNS)


def find_family(name: str) -> Family | None:
    """The family of that name or title, however it is written; None for `auto` and unknown names."""
    wanted = _plain_name(name)
    return next((family for family in FAMILIES if wanted in map(_plain_name, (family.name, *family.titles))), None)


def names_beginning_epoch(name: str | None) -> bool:
    """Whether the trainer's epoch number is that of the epoch that begins, so that the one before has just ended."""
    family = find_family(name) if name is not None else None
    return family is not None and family.epoch_begins


def recognise(text: str) -> str | None:
    """The trainer that is recognised in a line by a text that only it prints."""
    for sign, name in _SIGNS:  # not a generator: every line of a log comes here
        if sign in text:
            return name
    return None


@cache
def in_order(first: str | None) -> tuple[Family, ...]:
    """All families, the hinted or recognised one before the others; plain, which takes every line, stays last."""
    return tuple(sorted(FAMILIES, key=lambda family: (family is plain.FAMILY, family.name != first)))


@cache
def bar_readers(first: str | None) -> tuple[Family, ...]:
    """The families that read bars, in the same order."""
    return tuple(family for family in in_order(first) if family.read_bar)


def _plain_name(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "").replace(".", "")
