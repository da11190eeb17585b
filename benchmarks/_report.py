"""Prints a benchmark's figures: one JSON line for each."""

from __future__ import annotations

import json


def report(name: str, value: float, unit: str, *, at_most: float | None = None, at_least: float | None = None) -> None:
    """Print the figure beside its budget, which is an upper or a lower bound."""
    budget = at_most if at_most is not None else at_least
    assert budget is not None, "a benchmark has a budget"
    ok = value <= budget if at_most is not None else value >= budget
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "budget": budget, "ok": ok}), flush=True)


def print_figure(name: str, value: float, unit: str) -> None:
    """Print a figure that has no budget."""
    print(json.dumps({"name": name, "value": round(value, 3), "unit": unit, "budget": None, "ok": None}), flush=True)


def did_not_run(name: str, why: str) -> None:
    """Say that something to compare with does not run here, instead of a figure."""
    print(json.dumps({"name": name, "value": None, "unit": None, "budget": None, "ok": None, "note": why}), flush=True)
