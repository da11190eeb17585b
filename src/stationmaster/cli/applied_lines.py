"""What a new job follows of an analysis, as lines: a diff of its parameters, then what was not applied and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stationmaster.model import AppliedAdvice, SkippedAdvice
from stationmaster.printable import one_line


def applied_lines(applied: Sequence[AppliedAdvice], skipped: Sequence[SkippedAdvice]) -> Iterator[str]:
    """Yield the changes, `batch_size: 8 -> 2  (1. train.batch_size, critical: …)`, then the rest with its reasons."""
    if applied:
        yield "changes"
    width = max((len(one.change) for one in applied), default=0)
    for one in applied:
        yield one_line(f"  {one.change:<{width}}  ({one.number}. {one.config_path}, {one.severity}: {one.title})")
        if one.note:
            yield one_line(f"    {one.note}")
    if skipped:
        yield "not applied"
    for left in skipped:
        yield one_line(f"  {left.number}. {left.config_path}, {left.severity}: {left.why}")
