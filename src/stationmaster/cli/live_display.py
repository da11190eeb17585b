"""One job on a few lines of a terminal that are redrawn: what happens now, how far it is, what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.console import Group
from rich.text import Text

from stationmaster.cli.progress_bars import drawn_bar
from stationmaster.cli.render import progress_text, stage_text, starting_text, transfer_text
from stationmaster.durations import format_duration
from stationmaster.model import State
from stationmaster.money import format_dollars
from stationmaster.station.jobs import JobView

_BAR = 30
_DOING = {
    State.QUEUED: "waiting for a worker",
    State.PROVISIONING: "waiting for the machine",
    State.TRANSFERRING_DATA: "sending the dataset",
    State.EXECUTING: "preparing",
    State.FETCHING_RESULTS: "fetching the model",
    State.FINALIZING: "publishing",
    State.RELEASING: "releasing the machine",
}


def display(view: JobView, *, columns: int, stream: TextIO | None = None) -> Group:
    """The lines, none wider than the terminal; only alerts are wrapped. `stream`: where they are drawn."""
    job = view.job
    ran = format_duration(view.taken_seconds)
    lines = [
        Text.assemble((job.spec.name, "bold"), f"  {view.shown}  {stage_text(view)}"),
        *_work(view, columns=columns, stream=stream),
        Text(f"{job.id}  {ran}  {format_dollars(view.cost)} so far, quoted "
             f"{format_dollars(job.spec.quote.cost_expected)}"),
    ]  # fmt: skip
    for line in lines:
        line.no_wrap, line.overflow = True, "ellipsis"
    return Group(*lines, *(Text.assemble(("alert ", "bold red"), alert.message) for alert in view.alerts))


def _work(view: JobView, *, columns: int, stream: TextIO | None) -> Iterator[Text]:
    """A bar for each part whose end is known; otherwise what is waited for, and for how long."""
    job, progress = view.job, view.job.progress
    has_bar = False
    if progress.step is not None and progress.total_steps:
        has_bar = job.state is State.EXECUTING
        yield from _bar(
            progress.step / progress.total_steps, progress_text(progress, now=view.now), columns=columns, stream=stream
        )
    if (carried := job.machine.transfer) is not None:
        has_bar = True
        yield from _bar(carried.bytes / max(1, carried.total), transfer_text(carried), columns=columns, stream=stream)
    if not has_bar and (doing := _DOING.get(job.state)) is not None:
        waited = format_duration(max(0.0, view.now - job.state_since))
        about = starting_text(view) or job.machine.waits_for or job.machine.login_problem
        yield Text(f"{doing}, {waited}{f': {about}' if about else ''}", style="cyan")


def _bar(share: float, words: str, *, columns: int, stream: TextIO | None) -> Iterator[Text]:
    """The bar and its words on one line, or on two where the terminal is narrow."""
    if _BAR + 1 + len(words) < columns:
        yield Text.assemble((drawn_bar(share, _BAR, stream=stream), "cyan"), f" {words}")
        return
    yield Text(drawn_bar(share, max(4, min(columns - 1, _BAR)), stream=stream), style="cyan")
    yield Text(words)
