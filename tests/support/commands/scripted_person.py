"""A person who answers from a script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import typer

from stationmaster.cli.person import Completions
from stationmaster.cli.table import Column, Row, table_lines


class ScriptedPerson:
    """Gives the answers in order and leaves after the last; `asked` and `told` are what they saw."""

    def __init__(self, *answers: str) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []
        self.told: list[str] = []

    def answer(self, question: str, *, completions: Completions | None = None) -> str:
        self.asked.append(question)
        if not self._answers:
            raise typer.Abort
        return self._answers.pop(0)

    def tell(self, line: str) -> None:
        self.told.append(line)

    def show_table(self, columns: Sequence[Column], rows: Iterable[Row]) -> None:
        self.told.extend(table_lines(columns, rows, width=None))

    @property
    def unused(self) -> list[str]:
        return self._answers

    def saw(self) -> str:
        return "\n".join(self.told)
