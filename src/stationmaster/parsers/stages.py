"""Whose bar is it? The training bar told from those of loading, caching, sampling, evaluating and saving."""

from __future__ import annotations

import re
from dataclasses import dataclass

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Phase, Scope, Seen
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import Pair, find_pairs
from stationmaster.parsers.values import (
    eta_seconds,
    has_broken_gradient,
    has_validation_loss,
    learning_rate,
    speed,
    training_loss,
)

# First match wins; the words are those that start a description, so a job called "ai test" is not an evaluation.
_NAMED: tuple[tuple[re.Pattern[str], Phase], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), phase)
    for pattern, phase in (
        (
            r"enumerating|^(?:generating|creating) (?:\w+ )?(?:split|dataset|index)|tokeniz|^pack|^map\b|^filter\b",
            Phase.LOADING,
        ),
        (
            r"\bcach|latents?\b|^(?:pre-?)?(?:encod|comput)\w* (?:the )?(?:text|prompt|vae|embed)|\bembeds?\b|text embed|clip vision",
            Phase.CACHING,
        ),
        (
            r"\b(?:valid|validation|validating|evaluat\w+|eval|sanity|predict\w*|testing)\b|^(?:val|test|dev)\b|\bmAP\d*",
            Phase.EVALUATING,
        ),
        (
            r"generating (?:images?|samples?|controls?|videos?|baseline)|^samples?\b|\bsampling\b|^denois|^inference|^ddim|^plms|^rendering",
            Phase.SAMPLING,
        ),
        (
            r"\b(?:saving|merging|uploading|pushing|exporting|writing)\b|preparing safetensor|^upload|^(?:new )?data upload|^processing files",
            Phase.SAVING,
        ),
        (r"\b(?:loading|load|download\w*|fetching|resolving|quantiz\w+|shards?|extract\w*)\b", Phase.LOADING),
    )
)
_GERUND = re.compile(r"^(?!train|fine-?tun|optimi|learn|fitting)[a-z]{2,}ing\b", re.IGNORECASE)
_TRAINING = re.compile(
    r"^(?:total )?steps?\b|\bsteps?$|\btrain|fine-?tun|\biter(?:s|ation|ations)?\b|\bepochs?\W*\d|^batch|\bloss\b|\boptimi[sz]|^progress\b",
    re.IGNORECASE,
)
_EPOCH_BAR = re.compile(
    r"^(?:(?:total|training|train|overall|all)[ _])?epochs?(?: progress)?(?:[\s:,|-]+[a-z_ ]*loss.*)?$", re.IGNORECASE
)
_EPOCH_NUMBER = re.compile(
    r"\b(?:epochs?|ep)\b\W{0,3}(\d+)(?:\s*(?:/|of)\s*(\d+))?|^\s*(\d+)/(\d+)\s+\S|\b(\d+)(?:st|nd|rd|th) epoch\b",
    re.IGNORECASE,
)
_RUN_WIDE_WORD = re.compile(r"\bsteps$|^steps\b|global", re.IGNORECASE)
_PER_EPOCH_NAME = re.compile(r"^(?:train(?:ing)?|batch(?:es)?|iter(?:ation)?s?)?$", re.IGNORECASE)
_NOTEBOOK_EPOCH = re.compile(r"Epoch (\d+(?:\.\d+)?)/(\d+)")

#: A bar shorter than this share of the configured steps is not the training's, unless its name says so (X14).
_SHARE_OF_CONFIGURED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a bar is about; `phase` None for a bar that tells nothing."""

    phase: Phase | None
    confirmed: bool = False
    counts_epochs: bool = False


def read_bar(bar: Bar, memory: Memory) -> Seen | None:
    """What a bar says. Only the training bar moves the counter; any other only tells the phase."""
    pairs = [*find_pairs(bar.description), *find_pairs(bar.postfix)]
    stage = stage_of(bar, pairs, memory)
    if stage.counts_epochs:
        memory.has_epoch_lines = True
        return Seen(epoch=bar.step, total_epochs=bar.total, phase=Phase.TRAINING)
    if stage.phase == Phase.TRAINING:
        memory.follow_bar(bar.identity, bar.total, confirmed=stage.confirmed)
        return training_seen(bar, pairs, memory)
    return other_seen(bar, stage, memory)


def stage_of(bar: Bar, pairs: list[Pair], memory: Memory) -> Stage:
    """Decide by what the bar says of itself, then by its name, then by what was said before it."""
    if bar.step is None:
        return Stage(phase=Phase.LOADING)
    if _EPOCH_BAR.match(bar.description):
        return Stage(phase=Phase.TRAINING, counts_epochs=True)
    if learning_rate(pairs) is not None:
        return Stage(phase=Phase.TRAINING, confirmed=True)
    named = next((phase for pattern, phase in _NAMED if pattern.search(bar.description)), None)
    if named is not None:
        return Stage(phase=named)
    if training_loss(pairs) is not None or _TRAINING.search(bar.description) or _EPOCH_NUMBER.search(bar.description):
        return Stage(phase=Phase.TRAINING, confirmed=True)
    if has_validation_loss(pairs):
        return Stage(phase=Phase.EVALUATING)
    if _GERUND.match(bar.description):
        return Stage(phase=Phase.LOADING)
    return _stage_by_context(bar, memory)


def training_seen(bar: Bar, pairs: list[Pair], memory: Memory) -> Seen:
    """The progress that the training bar shows."""
    epoch, total_epochs = _epoch_of(bar)
    scope = scope_of(bar, epoch, memory)
    if bar.is_complete:
        memory.bar_was_full = True
    elif memory.bar_was_full:  # it starts again
        scope = Scope.EPOCH if not memory.fit_over else scope
        memory.bar_was_full = False
    return Seen(
        step=bar.step,
        total=bar.total,
        scope=scope,
        epoch=epoch,
        total_epochs=total_epochs,
        loss=training_loss(pairs),
        broken_gradient=has_broken_gradient(pairs),
        learning_rate=learning_rate(pairs),
        rate=bar.rate if bar.rate is not None else speed(find_pairs(bar.postfix)),
        eta_seconds=bar.eta_seconds if bar.eta_seconds is not None else eta_seconds(find_pairs(bar.postfix)),
        phase=Phase.TRAINING,
        finished=bar.is_complete and scope == Scope.RUN,
        evidence=bar.text,
    )


def scope_of(bar: Bar, epoch: float | None, memory: Memory) -> Scope:
    if memory.scope == Scope.EPOCH and bar.identity == memory.bar_identity and memory.step is not None:
        return Scope.EPOCH
    if _RUN_WIDE_WORD.search(bar.description) and not memory.has_epoch_lines:
        return Scope.RUN
    if epoch is not None and "," not in bar.description[-12:]:
        return Scope.RUN if _NOTEBOOK_EPOCH.search(bar.postfix) else Scope.EPOCH
    if memory.has_epoch_lines and (
        _PER_EPOCH_NAME.match(bar.description) or not _RUN_WIDE_WORD.search(bar.description)
    ):
        return Scope.EPOCH
    return Scope.RUN


def other_seen(bar: Bar, stage: Stage, memory: Memory) -> Seen | None:
    """A bar of something else: it tells the phase, unless it is drawn again on being closed."""
    was_full = bar.identity in memory.full_bars
    if bar.is_complete:
        memory.remember_full_bar(bar.identity)
    if stage.phase is None or (bar.is_complete and memory.finished and was_full):
        return None
    if stage.phase == Phase.LOADING and bar.is_complete and memory.step is not None:
        return None
    return Seen(phase=stage.phase)


def _stage_by_context(bar: Bar, memory: Memory) -> Stage:
    if bar.total is not None and bar.total in (memory.header_total, memory.configured_total):
        return Stage(phase=Phase.TRAINING, confirmed=True)
    is_known = (bar.identity, bar.total) == (memory.bar_identity, memory.bar_total)
    if is_known:
        return Stage(phase=Phase.TRAINING)
    if memory.announced is not None:
        return Stage(phase=Phase(memory.announced))
    if memory.bar_identity is not None and bar.total != memory.bar_total:
        return _stage_beside_training(bar, memory)
    if memory.header_total is not None and bar.total is not None and not bar.description:
        return Stage(phase=Phase.EVALUATING if memory.step is not None else None)
    configured = memory.configured_total
    if configured and bar.total is not None and bar.total < configured * _SHARE_OF_CONFIGURED:
        return Stage(phase=None)
    return Stage(phase=Phase.TRAINING)


def _stage_beside_training(bar: Bar, memory: Memory) -> Stage:
    """A bar of another length while a training bar is known."""
    if memory.bar_was_full and (memory.loss_since_bar or not memory.bar_confirmed):
        return Stage(phase=Phase.TRAINING)  # a second run in the same log
    if not memory.bar_confirmed and memory.before_bar is not None and bar.description and memory.bar_identity == "":
        return Stage(phase=Phase.TRAINING)  # a named bar says more than an unnamed one
    if memory.phase == Phase.SAMPLING or not bar.description:
        return Stage(phase=Phase.SAMPLING if memory.phase == Phase.SAMPLING else Phase.EVALUATING)
    return Stage(phase=None)


def _epoch_of(bar: Bar) -> tuple[float | None, int | None]:
    if found := _NOTEBOOK_EPOCH.search(bar.postfix):
        return float(found[1]), int(found[2])
    found = _EPOCH_NUMBER.search(bar.description)
    if not found:
        return None, None
    number = found[1] or found[3] or found[5]
    total = found[2] or found[4]
    return float(number), int(total) if total else None
