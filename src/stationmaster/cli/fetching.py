"""How far the fetching of a dataset from elsewhere is, for the person who waits for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from stationmaster.station.datasets import Progress, Source


@contextmanager
def shown_progress(source: Source | None) -> Iterator[Progress | None]:
    """A callback that shows progress on one line of the terminal; None where there is no terminal."""
    if source is None or isinstance(source, Path) or not sys.stderr.isatty():
        yield None
        return
    try:
        yield lambda done, total: _say(progress_line(str(source), done, total))
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
