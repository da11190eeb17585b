"""The parameters and the machine of a new job that follows the analysis of an old one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stationmaster.analysis.applying.fitting import DoesNotFit, fitted
from stationmaster.analysis.applying.machine import can_be_asked_for, changed_wish
from stationmaster.analysis.applying.selection import Numbered, chosen, numbered
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Report, Severity
from stationmaster.model import AppliedAdvice, MachineWish, SkippedAdvice
from stationmaster.model.advice import text_of
from stationmaster.recipes.parameters import ParameterValue, allowed
from stationmaster.recipes.schema import Recipe

_FIXED_BY_A_CHECKPOINT = frozenset({Lever.MODEL, Lever.OPTIMIZER})
"""What a checkpoint was made with and cannot be continued without."""

_SPOILS_A_MODEL = frozenset({Lever.LEARNING_RATE, Lever.DTYPE, Lever.HALF_VAE})
_SPOILT = "the checkpoint was made with the old settings and may be spoilt; without --resume the training starts anew"


@dataclass(frozen=True, slots=True, kw_only=True)
class OldJob:
    """The job whose analysis is applied."""

    id: str
    recipe: Recipe
    parameters: Mapping[str, ParameterValue]
    """Every parameter's value, as `resolve` returns them."""
    wish: MachineWish = field(default_factory=MachineWish)
    host: str | None = None
    """The machine that it ran on, as its provider identifies it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """What the new job has instead, and which recommendations it follows."""

    parameters: Mapping[str, ParameterValue]
    wish: MachineWish
    applied: tuple[AppliedAdvice, ...]
    skipped: tuple[SkippedAdvice, ...]
    notes: tuple[str, ...] = ()


def follow(report: Report, job: OldJob, *, only: Sequence[str] = (), resuming: bool = False) -> Followed:
    """Apply the recommendations that `only` names, by default all that are critical or a warning.

    Of two for the same parameter the one with the higher rank counts. `resuming`: the new job continues from a
    checkpoint. Raises UserError if `only` names none, or if there is none.
    """
    every = numbered(report, job.recipe)
    selected = chosen(every, only, job_id=job.id)
    making = _Following(job, resuming=resuming)
    for one in selected:
        try:
            making.apply(one)
        except DoesNotFit as reason:
            making.skip(one, str(reason))
    if not only:
        for one in every:
            if one.advice.severity is Severity.INFO:
                making.skip(one, f"it is only info: --only {one.number} applies it")
    return Followed(
        parameters=making.parameters,
        wish=making.wish,
        applied=tuple(making.applied),
        skipped=tuple(sorted(making.skipped, key=lambda each: each.number)),
        notes=tuple(making.notes),
    )


class _Following:
    def __init__(self, job: OldJob, *, resuming: bool) -> None:
        self._job = job
        self._resuming = resuming
        self.parameters = dict(job.parameters)
        self.wish = job.wish
        self.applied: list[AppliedAdvice] = []
        self.skipped: list[SkippedAdvice] = []
        self.notes: list[str] = []

    def apply(self, one: Numbered) -> None:
        """Raises DoesNotFit, with the reason."""
        if self._resuming and one.advice.lever in _FIXED_BY_A_CHECKPOINT:
            raise DoesNotFit("it cannot change for a checkpoint that exists: leave out --resume")
        if one.parameter is not None:
            self._set_parameter(one, one.parameter)
        elif can_be_asked_for(one.advice.lever, self._job.recipe):
            self._ask_of_machine(one)
        else:
            raise DoesNotFit(f"{self._job.recipe.reference} has no parameter for it: {_by_hand(one)}")
        if self._resuming and one.advice.lever in _SPOILS_A_MODEL and _SPOILT not in self.notes:
            self.notes.append(_SPOILT)

    def skip(self, one: Numbered, why: str) -> None:
        self.skipped.append(
            SkippedAdvice(
                number=one.number,
                severity=one.advice.severity.value,
                title=one.advice.title,
                config_path=one.advice.config_path,
                recommended_value=one.advice.recommended_value,
                why=why,
            )
        )

    def _set_parameter(self, one: Numbered, name: str) -> None:
        parameter, wanted = self._job.recipe.parameters[name], one.advice.recommended_value
        self._refuse_second(one, name)
        before = self.parameters[name]
        after = fitted(parameter, wanted, lever=one.advice.lever)
        note = None if _is_same(after, wanted) else f"recommended is {text_of(wanted)}; it accepts {allowed(parameter)}"
        if after == before:
            raise DoesNotFit(f"{name} is {text_of(before)} already" + (f": {note}" if note else ""))
        self.parameters[name] = after
        self._note(one, name, before=before, after=after, note=note)

    def _ask_of_machine(self, one: Numbered) -> None:
        lever = one.advice.lever
        self._refuse_second(one, lever.value)
        wanted = one.advice.recommended_value
        change = changed_wish(lever, wanted, wish=self.wish, recipe=self._job.recipe, host=self._job.host)
        self.wish = change.wish
        self._note(one, lever.value, before=change.before, after=change.after, note=change.note)

    def _refuse_second(self, one: Numbered, what: str) -> None:
        if first := next((each for each in self.applied if each.what == what), None):
            raise DoesNotFit(f"recommendation {first.number} sets {what} to {text_of(first.after)}")

    def _note(self, one: Numbered, what: str, *, before: Any, after: Any, note: str | None) -> None:
        self.applied.append(
            AppliedAdvice(
                number=one.number,
                what=what,
                before=before,
                after=after,
                severity=one.advice.severity.value,
                title=one.advice.title,
                config_path=one.advice.config_path,
                note=note,
            )
        )


def _is_same(after: ParameterValue, wanted: Any) -> bool:
    """Whether the parameter holds what was recommended, if in another type."""
    largest = max(wanted, default=None) if isinstance(wanted, list | tuple) else wanted
    return after == wanted or str(after) == str(largest)


def _by_hand(one: Numbered) -> str:
    path, value = one.advice.config_path, one.advice.recommended_value
    return f"change {path}" if value is None else f"set {path} to {text_of(value)}"
