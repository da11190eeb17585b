"""A dataset that lies elsewhere is fetched before anything else is done with it, and a person sees how far that is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from stationmaster.datasets.sources.reference import Source
    from stationmaster.settings import Settings


def fetch_first(source: Source, settings: Callable[[], Settings]) -> None:
    """The dataset is in the cache; one that lies here needs nothing."""
    if isinstance(source, Path):
        return
    from stationmaster.control.sources import brought_home

    if not sys.stderr.isatty():
        brought_home(source, settings())
        return
    try:
        brought_home(source, settings(), progress=lambda done, total: _say(progress_line(str(source), done, total)))
    finally:
        _say("")


def progress_line(source: str, done: int, total: int) -> str:
    """
    >>> progress_line("s3://pictures/cats", 1_500_000, 12_000_000)
    'fetching s3://pictures/cats: 1.5 of 12.0 MB'
    """
    return f"fetching {source}: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB"


def _say(line: str) -> None:
    typer.echo(f"\r{line}\x1b[K", err=True, nl=False)  # over the line before
