"""Which recommendations of an analysis are to be applied."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stationmaster.analysis.report import Recommendation, Report, Severity
from stationmaster.errors import UserError
from stationmaster.recipes.config_paths import is_same_path, parameter_behind
from stationmaster.recipes.parameter_levers import parameter_with
from stationmaster.recipes.schema import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbered:
    """A recommendation with its place in the analysis, from 1, and the parameter that it is for, if there is one."""

    number: int
    advice: Recommendation
    parameter: str | None

    def is_named(self, text: str) -> bool:
        """Whether a person names it by its number, lever, config path or parameter."""
        names = (str(self.number), self.advice.lever.value, self.parameter)
        return text in names or is_same_path(text, self.advice.config_path)


def numbered(report: Report, recipe: Recipe) -> tuple[Numbered, ...]:
    """Return the recommendations in their order: the higher rank first."""
    return tuple(
        Numbered(
            number=number,
            advice=advice,
            parameter=parameter_behind(recipe, advice.config_path) or parameter_with(recipe, advice.lever),
        )
        for number, advice in enumerate(report.recommendations, start=1)
    )


def chosen(every: Sequence[Numbered], only: Sequence[str], *, job_id: str) -> tuple[Numbered, ...]:
    """Return those that `only` names; without names, all that are critical or a warning. Raises UserError."""
    if not every:
        raise UserError(
            f"the analysis of job {job_id} recommends no change",
            hint=f"retry it unchanged: stationmaster retry {job_id}",
        )
    for text in only:
        if not any(one.is_named(text) for one in every):
            raise UserError(
                f"the analysis of job {job_id} recommends nothing for {text!r}", hint=f"--only takes {_listed(every)}"
            )
    if only:
        return tuple(one for one in every if any(one.is_named(text) for text in only))
    return tuple(one for one in every if one.advice.severity is not Severity.INFO)


def _listed(every: Sequence[Numbered]) -> str:
    """Each by its number and its shortest name: `1 (batch_size), 2 (machine.disk_gb)`."""
    return ", ".join(f"{one.number} ({one.parameter or one.advice.lever.value})" for one in every)
