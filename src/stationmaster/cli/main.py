"""The command line's entry: global options, the table of commands, and the one place where errors become words."""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from stationmaster import __version__
from stationmaster.cli import (
    costs,
    credits,
    dataset,
    demo,
    doctor,
    estimate,
    jobs,
    keys,
    logs,
    models,
    monitor,
    notify,
    offers,
    pull,
    recipes,
    recorded,
    serve,
    simulator,
    ssh,
    sweep,
    train,
    up,
    users,
    watch,
    worker,
)
from stationmaster.cli.context import Options
from stationmaster.cli.recipe_options import RecipeCommand
from stationmaster.errors import DiskFull, StationmasterError

app = typer.Typer(
    name="stationmaster",
    help="Runs your trainings on rented GPUs and brings the models home.",
    epilog="Start with: stationmaster demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

app.command("demo")(demo.demo)
app.command("train", cls=RecipeCommand)(train.train)
app.command("estimate", cls=RecipeCommand)(estimate.estimate)
app.command("costs")(costs.costs)
app.add_typer(jobs.app, name="jobs")
app.command("show")(jobs.show)
app.command("logs")(logs.logs)
app.command("watch")(watch.watch)
app.command("stop")(jobs.stop)
app.command("cancel")(jobs.cancel)
app.command("retry")(jobs.retry)
app.command("ssh")(ssh.ssh)
app.command("pull")(pull.pull)
app.add_typer(models.app, name="models")
app.add_typer(recipes.app, name="recipes")
app.add_typer(dataset.app, name="dataset")
app.command("parse")(recorded.parse)
app.command("replay")(recorded.replay)
app.add_typer(keys.app, name="keys")
app.add_typer(users.app, name="users")
app.add_typer(credits.app, name="credits", hidden=True)  # who has none need not hear of them
app.add_typer(notify.app, name="notify")
app.command("monitor")(monitor.monitor)
app.command("offers")(offers.offers)
app.command("instances")(sweep.instances)
app.command("sweep")(sweep.sweep)
app.command("up")(up.up)
app.command("serve")(serve.serve)
app.command("worker")(worker.worker)
app.command("sweeper")(sweep.sweeper)
app.command("simulator")(simulator.simulator)
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stationmaster {__version__}")
        raise typer.Exit


@app.callback()
def _global_options(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON wherever a command can.")] = False,
    home: Annotated[Path | None, typer.Option(help="Where everything local lies.", show_default=False)] = None,
    log_level: Annotated[str | None, typer.Option(help="DEBUG, INFO, WARNING or ERROR.", show_default=False)] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    context.obj = Options(as_json=as_json, home=home, log_level=log_level, environ=os.environ)


def _global_options_first(words: list[str]) -> list[str]:
    """Where a person put `--home` does not matter; what follows `--` is not for us.

    >>> _global_options_first(["doctor", "--home", "/tmp/x", "--log-level=DEBUG", "--", "--home", "y"])
    ['--home', '/tmp/x', '--log-level=DEBUG', 'doctor', '--', '--home', 'y']
    """
    end = words.index("--") if "--" in words else len(words)
    ours, theirs = [], []
    rest = iter(words[:end])
    for word in rest:
        if word in ("--home", "--log-level") and (value := next(rest, None)) is not None:
            ours += [word, value]
        elif word.startswith(("--home=", "--log-level=")):
            ours.append(word)
        else:
            theirs.append(word)
    return [*ours, *theirs, *words[end:]]


def main() -> None:
    """Run a command; whatever goes wrong becomes one line and a hint, never a traceback."""
    try:
        app(_global_options_first(sys.argv[1:]))
    except StationmasterError as error:
        sys.exit(_tell(error))
    except KeyboardInterrupt:
        sys.exit(130)
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):
            # Somebody closed the pipe we print to, as `| head` does: no failure, but nothing more can be said there.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(0)
        raise
    except Exception as error:  # noqa: BLE001 (the program's top: keep the traceback for us, spare the person)
        sys.exit(_tell_unforeseen(error))


def _tell(error: StationmasterError) -> int:
    typer.echo(f"error: {error}" if error.exit_code else str(error), err=True)
    if error.hint:
        typer.echo(f"hint: {error.hint}", err=True)
    return error.exit_code


def _tell_unforeseen(error: Exception) -> int:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return _tell(DiskFull(f"{place}{error.strerror}", hint="free some room, or move the home: --home"))
        typer.echo(f"error: {place}{error.strerror}", err=True)
        return 1
    import tempfile  # only on the way down
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="stationmaster-crash-", suffix=".txt", delete=False) as file:
        traceback.print_exc(file=file)
    typer.echo(f"error: something went wrong that should not have: {type(error).__name__}: {error}", err=True)
    typer.echo(f"hint: please report it with {file.name}", err=True)
    return 70
