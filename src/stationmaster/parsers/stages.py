"""Distinguishes the training bar from those of loading, caching, sampling, evaluating and saving."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed, Phase, Scope, any_of
from stationmaster.parsers.counters import find_counter
from stationmaster.parsers.memory import Memory
from stationmaster.parsers.pairs import find_pairs
from stationmaster.parsers.values import Values, values_of

# First match wins; most words have to start a description, so a job called "ai test" is not an evaluation.
_NAMED: tuple[tuple[re.Pattern[str], Phase], ...] = (
    (
        any_of(
            r"enumerating|tokeniz|^pack|^map\b|^filter\b",
            r"^(?:generating|creating) (?:\w+ )?(?:split|dataset|index)",
        ),
        Phase.LOADING,
    ),
    (
        any_of(
            r"\bcach|\blatents?\b|\bembeds?\b|text embed|clip vision",
            r"^(?:pre-?)?(?:encod|comput)\w* (?:the )?(?:text|prompt|vae|embed)",
        ),
        Phase.CACHING,
    ),
    (
        any_of(
            r"\b(?:valid|validation|validating|evaluat\w+|eval|sanity|predict\w*|testing)\b",
            r"^(?:val|test|dev)\b|^calculating loss\b",
            r"\bmAP\d*",
        ),
        Phase.EVALUATING,
    ),
    (
        any_of(
            r"generating (?:images?|samples?|controls?|videos?|baseline)",
            r"^samples?\b|\bsampling\b|^denois|^inference|^ddim|^plms|^rendering",
        ),
        Phase.SAMPLING,
    ),
    (
        any_of(
            r"\b(?:saving|merging|uploading|pushing|exporting|writing)\b",
            r"preparing safetensor|^upload|^(?:new )?data upload|^processing files",
        ),
        Phase.SAVING,
    ),
    (any_of(r"\b(?:loading|load|download\w*|fetching|resolving|quantiz\w+|shards?|extract\w*)\b"), Phase.LOADING),
)
_GERUND = any_of(r"^(?!train|fine-?tun|optimi|learn|fitting)[a-z]{2,}ing\b")
_TRAINING = any_of(
    r"^(?:total )?steps?\b|\bsteps?$|\btrain|fine-?tun|\biter(?:s|ation|ations)?\b|\bepochs?\W*\d|^batch",
    r"\bloss\b|\boptimi[sz]|^progress\b",
)
_EPOCH_BAR = any_of(
    r"^(?:(?:total|training|train|overall|all)[ _])?epochs?(?: progress)?(?:[\s:,|-]+[a-z_ ]{0,20}loss.*)?$",
)
_EPOCH_NUMBER = any_of(
    r"\b(?:epochs?|ep)\b\W{0,3}(\d+)(?:\s*(?:/|of)\s*(\d+))?",
    r"^\s*(\d+)/(\d+)\s+\S",
    r"\b(\d+)(?:st|nd|rd|th) epoch\b",
)
_RUN_WIDE = any_of(r"\bsteps$|^steps\b|global")
_NOTEBOOK_EPOCH = re.compile(r"Epoch (\d+(?:\.\d+)?)/(\d+)")

#: A bar shorter than this share of the configured steps is not the training's, unless its name shows it (X14).
_SHARE_OF_CONFIGURED = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a bar is about; `phase` is None for a bar that shows nothing of use."""

    phase: Phase | None
    confirmed: bool = False
    counts_epochs: bool = False
    is_guess: bool = False  # by the shape of a word only


def read_bar(bar: Bar, memory: Memory) -> Parsed | None:
    """What a bar shows. Only the training bar moves the counter; any other only gives the phase."""
    values = values_of([*find_pairs(bar.description), *find_pairs(bar.postfix)])
    if values.loss is None and _keeps_pace_with_epochs(bar, memory):
        memory.forget_counter(bar.identity)
        return Parsed(phase=Phase.TRAINING)
    stage = stage_of(bar, values, memory)
    if stage.counts_epochs:
        memory.has_epoch_lines = True
        return _read_epoch_bar(bar, values)
    if stage.phase == Phase.TRAINING:
        memory.follow_bar(bar.identity, bar.total, confirmed=stage.confirmed)
        return read_training_bar(bar, values, memory)
    return _read_other_bar(bar, stage, memory)


def stage_of(bar: Bar, values: Values, memory: Memory) -> Stage:
    """Decide by the bar's values, then by its name, then by what was printed before it."""
    if bar.step is None:
        return Stage(phase=Phase.LOADING)
    name = _stage_by_name(bar.description)
    if name.counts_epochs or _repeats_its_name(bar):
        return Stage(phase=Phase.TRAINING, counts_epochs=True)
    if values.learning_rate is not None:
        return Stage(phase=Phase.TRAINING, confirmed=True)
    if name.phase is not None and not name.is_guess:
        return name
    if values.loss is not None:
        return Stage(phase=Phase.TRAINING, confirmed=True)
    if values.has_validation_loss:
        return Stage(phase=Phase.EVALUATING)
    return name if name.phase is not None else _stage_by_context(bar, memory)


def names_stage(description: str) -> bool:
    """Whether a bar's name shows what it is about."""
    return _stage_by_name(description).phase is not None


def read_training_bar(bar: Bar, values: Values, memory: Memory) -> Parsed:
    """The progress that the training bar shows."""
    epoch, total_epochs = _epoch_of(bar)
    scope = scope_of(bar, epoch, memory)
    if epoch is None and "poch" in bar.postfix:
        epoch, total_epochs = _epoch_beside(bar)
    if bar.is_complete:
        memory.bar_was_full = True
    elif memory.bar_was_full:  # it starts again
        scope = Scope.EPOCH if not memory.fit_over else scope
        memory.bar_was_full = False
    return Parsed(
        step=bar.step,
        total=bar.total,
        scope=scope,
        epoch=epoch,
        total_epochs=total_epochs,
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        broken_gradient=values.broken_gradient,
        learning_rate=values.learning_rate,
        rate=bar.rate if bar.rate is not None else values.rate,
        eta_seconds=bar.eta_seconds if bar.eta_seconds is not None else values.eta_seconds,
        phase=Phase.TRAINING,
        finished=bar.is_complete and scope == Scope.RUN,
        evidence=bar.text,
    )


def scope_of(bar: Bar, epoch: float | None, memory: Memory) -> Scope:
    if memory.scope == Scope.EPOCH and bar.identity == memory.bar_identity and memory.step is not None:
        return Scope.EPOCH
    if _RUN_WIDE.search(bar.description) and not memory.has_epoch_lines:
        return Scope.RUN
    if epoch is not None:
        return Scope.RUN if _NOTEBOOK_EPOCH.search(bar.postfix) else Scope.EPOCH
    return Scope.EPOCH if memory.has_epoch_lines else Scope.RUN


def _read_epoch_bar(bar: Bar, values: Values) -> Parsed:
    return Parsed(
        epoch=bar.step,
        total_epochs=bar.total,
        loss=values.loss,
        loss_is_part=values.loss_is_part,
        loss_is_epoch_mean=True,
        learning_rate=values.learning_rate,
        phase=Phase.TRAINING,
        evidence=bar.text,
    )


def _read_other_bar(bar: Bar, stage: Stage, memory: Memory) -> Parsed | None:
    """A bar of something else gives the phase, unless it is only redrawn on being closed."""
    was_full = bar.identity in memory.full_bars
    if bar.is_complete:
        memory.remember_full_bar(bar.identity)
    if stage.phase is None or (bar.is_complete and memory.finished and was_full):
        return None
    if stage.phase == Phase.LOADING and bar.is_complete and memory.step is not None:
        return None
    return Parsed(phase=stage.phase)


@lru_cache(maxsize=512)
def _stage_by_name(description: str) -> Stage:
    if _EPOCH_BAR.match(description):
        return Stage(phase=Phase.TRAINING, counts_epochs=True)
    if named := next((phase for pattern, phase in _NAMED if pattern.search(description)), None):
        return Stage(phase=named)
    if _TRAINING.search(description) or _EPOCH_NUMBER.search(description):
        return Stage(phase=Phase.TRAINING, confirmed=True)
    if _GERUND.match(description):
        return Stage(phase=Phase.LOADING, is_guess=True)
    return Stage(phase=None)


def _repeats_its_name(bar: Bar) -> bool:
    """`Epoch 5/20: 20%|██ | 4/20` counts epochs, not the steps of one."""
    epoch, total_epochs = _epoch_of(bar)
    return epoch is not None and bar.total == total_epochs and bar.step in (epoch, epoch - 1)


def _keeps_pace_with_epochs(bar: Bar, memory: Memory) -> bool:
    """Whether a bar as long as there are epochs is drawn once for each, between lines such as `Epoch 3/10`."""
    if bar.step is None or bar.total is None or memory.epoch is None or bar.total != memory.total_epochs:
        return False
    is_inner = memory.total == bar.total and (memory.step or 0) > memory.epoch + 1
    is_named = _EPOCH_BAR.match(bar.description) or _epoch_of(bar)[0] is not None
    return not is_inner and not is_named and abs(bar.step - memory.epoch) <= 1


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
        return Stage(phase=Phase.TRAINING)  # a named bar is better evidence than an unnamed one
    if memory.phase == Phase.SAMPLING or not bar.description:
        return Stage(phase=Phase.SAMPLING if memory.phase == Phase.SAMPLING else Phase.EVALUATING)
    return Stage(phase=None)


def _epoch_of(bar: Bar) -> tuple[float | None, int | None]:
    if "Epoch " in bar.postfix and (found := _NOTEBOOK_EPOCH.search(bar.postfix)):
        return float(found[1]), int(found[2])
    return _named_epoch(bar.description)


def _epoch_beside(bar: Bar) -> tuple[float | None, int | None]:
    """An epoch among the values of a bar; it does not tell whether the bar starts again with each."""
    counter = find_counter(find_pairs(bar.postfix))
    return counter.epoch, counter.total_epochs


@lru_cache(maxsize=512)
def _named_epoch(description: str) -> tuple[float | None, int | None]:
    found = _EPOCH_NUMBER.search(description)
    if not found:
        return None, None
    number = found[1] or found[3] or found[5]
    total = found[2] or found[4]
    return float(number), int(total) if total else None
