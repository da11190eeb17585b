"""The findings of a dataset check, each with a fix."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stationmaster.datasets.tree import shown
from stationmaster.errors import DatasetInvalid


class Severity(StrEnum):
    ERROR = "error"  # prevents the training
    WARNING = "warning"  # does not prevent the training


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetProblem:
    """One finding. `code` is stable; `path` is relative to the dataset, empty for the whole dataset."""

    severity: Severity
    code: str
    path: str
    message: str
    fix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetReport:
    """Errors first, then warnings, each by path. `repairs` lists what `fix` changed in its copy."""

    problems: tuple[DatasetProblem, ...]
    files: int
    bytes: int
    images: int = 0
    captions: int = 0
    rows: int = 0
    repairs: tuple[str, ...] = field(default=())

    @property
    def errors(self) -> tuple[DatasetProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[DatasetProblem, ...]:
        return tuple(problem for problem in self.problems if problem.severity is Severity.WARNING)

    @property
    def is_trainable(self) -> bool:
        return not self.errors

    def raise_for_errors(self) -> None:
        """Raise DatasetInvalid for the first error, with its fix as the hint."""
        if not self.errors:
            return
        first, count = self.errors[0], len(self.errors)
        where = f"{shown(first.path)}: " if first.path else ""
        raise DatasetInvalid(
            f"the dataset has {count} error{'s' if count > 1 else ''}, first: {where}{first.message}", hint=first.fix
        )


def error(code: str, path: str, message: str, fix: str) -> DatasetProblem:
    return DatasetProblem(severity=Severity.ERROR, code=code, path=path, message=message, fix=fix)


def warning(code: str, path: str, message: str, fix: str) -> DatasetProblem:
    return DatasetProblem(severity=Severity.WARNING, code=code, path=path, message=message, fix=fix)
