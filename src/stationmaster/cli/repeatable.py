"""A `train` command line that says everything: it can be repeated without questions."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stationmaster.cli.context import Options

if TYPE_CHECKING:
    from stationmaster.station.job_file import JobFile

_NAMED = ("recipe", "dataset", "name", "trigger", "steps")
_FURTHER = ("provider", "account", "id", "owner", "max_price", "max_hours", "max_spend", "offer")


def train_command(job: JobFile, options: Options, *, job_file: Path | None = None, watch: bool, dry_run: bool) -> str:
    """The command line, quoted for a shell. `job` is what is not in the job file."""
    words = ["stationmaster", *_global_words(options), "train", *([] if job_file is None else [str(job_file)])]
    words += [word for name in _NAMED for word in _words(name, getattr(job, name))]
    for name, value in (job.parameters or {}).items():
        words += ["-p", f"{name}={value}"]
    words += [word for name in _FURTHER for word in _words(name, getattr(job, name))]
    if job.machine is not None:
        words += _words("gpus", job.machine.gpus)
    words += ["--watch"] if watch else []
    words += ["--dry-run"] if dry_run else []
    return shlex.join(words)


def _global_words(options: Options) -> Iterator[str]:
    """The global options that were given, as far as they decide what the command acts on."""
    if options.home is not None:
        yield from ("--home", str(options.home))
    if options.server is not None:
        yield from ("--server", options.server)


def _words(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    option, text = f"--{name.replace('_', '-')}", str(value)
    # a value that starts with a dash would be read as an option
    return [f"{option}={text}"] if text.startswith("-") else [option, text]
