"""Facts of a job in words, as `show` and the summary at the end of a watched job print them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stationmaster.durations import format_duration
from stationmaster.lifecycle import is_parked
from stationmaster.model import Outcome
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.station.jobs import JobView

_CENT = 10_000  # micro-dollars
_LONG_COMMAND = 50  # what a longer one does stands behind it, not in the column


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command that the person may want to run now, and what it does."""

    command: str
    gives: str


def cost_text(view: JobView) -> str:
    """What the job has cost so far, against its quote: `$0.42 (quoted $0.50, 16 % less)`."""
    quoted = view.job.spec.quote.cost_expected
    share = "" if view.job.outcome is None else _difference(view.cost, quoted)
    return f"{dollars_text(view.cost)} (quoted {dollars_text(quoted)}{share})"


def dollars_text(amount: MicroDollars) -> str:
    """With four decimals below a cent.

    >>> dollars_text(MicroDollars(420_000)), dollars_text(MicroDollars(2_100)), dollars_text(MicroDollars(0))
    ('$0.42', '$0.0021', '$0.00')
    """
    return format_dollars(amount, 4) if 0 < amount < _CENT else format_dollars(amount)


def _difference(amount: float, quoted: float) -> str:
    if not amount or not quoted:
        return ""
    if amount >= 2 * quoted:
        return f", {amount / quoted:.1f} times that"
    percent = round(100 * (amount - quoted) / quoted)
    return "" if not percent else f", {abs(percent)} % {'more' if percent > 0 else 'less'}"


def rented_text(view: JobView) -> str | None:
    """How long it had its machines, against its quote; None where it had none."""
    if not (rented := view.rented_seconds):
        return None
    quoted = view.job.spec.quote.hours_expected * 3600
    return f"{format_duration(rented)} on the machine (quoted {format_duration(quoted)}{_difference(rented, quoted)})"


def model_places(view: JobView) -> list[str]:
    """Where the model is: its own address first, which may be a bucket's, then its other copies."""
    copies = [one.location for one in view.checkpoints if one.kind == "checkpoint" and one.verified_at and one.location]
    model = view.job.model.address
    if model is None:
        return copies[-1:]
    return [model] if model in copies else [model, *copies[-1:]]


def other_checkpoints(view: JobView) -> list[str]:
    """Verified checkpoints beside the model."""
    known = model_places(view)
    found = [one.location for one in view.checkpoints if one.kind == "checkpoint" and one.verified_at and one.location]
    return [place for place in found if place not in known]


def samples_text(view: JobView) -> str | None:
    samples = [one.location for one in view.checkpoints if one.kind == "sample" and one.location]
    if not samples:
        return None
    return samples[-1] + (f" and {len(samples) - 1} more" if len(samples) > 1 else "")


def next_steps(view: JobView) -> Iterator[NextStep]:
    """What to do now, the likeliest first."""
    job = view.job
    name = job.id
    if job.outcome is None:
        if is_parked(job):
            yield NextStep(f"stop {name}", "start the machine again and retry the download once")
            yield NextStep(f"cancel {name}", "give up the model and destroy the machine")
            return
        yield NextStep(f"watch {name}", "follow it")
        yield NextStep(f"logs {name} -f", "what the trainer prints")
        return
    if job.outcome in (Outcome.COMPLETED, Outcome.INCOMPLETE) and model_places(view):
        yield NextStep(f"pull {name} ./{_folder(job.spec.name)}", "copy the files, verified")
    if job.outcome is Outcome.FAILED:
        yield NextStep(f"logs {name} --errors", "what went wrong")
    if job.outcome is Outcome.FAILED_PROVISIONING:
        yield NextStep(f"offers --recipe {job.spec.recipe}", "what can be rented now")
    if view.health is not None and view.health.headline is not None:
        yield NextStep(f"analyze {name}", "what to change")
    if job.outcome is not Outcome.COMPLETED and job.spec.adopted is None:
        resumes = job.outcome is Outcome.INCOMPLETE and bool(model_places(view))
        yield NextStep(f"retry {name}{' --resume' if resumes else ''}", "train again, as a new job")


def next_lines(steps: Sequence[NextStep], *, width: int) -> Iterator[str]:
    """The commands below each other, with what they do where that fits."""
    commands = [f"stationmaster {step.command}" for step in steps]
    column = max((len(command) for command in commands if len(command) <= _LONG_COMMAND), default=0)
    for command, step in zip(commands, steps, strict=True):
        line = f"  {command:<{column}}  {step.gives}"
        yield line if len(line) <= width else f"  {command}"


def _folder(name: str) -> str:
    """The job's name if it can be typed as it is."""
    plain = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name).strip(".-")
    return plain if plain and plain.isascii() else "model"
