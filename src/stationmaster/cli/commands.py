"""The table of commands, and the options that all of them share."""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

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
app.command("save")(jobs.save)
app.command("sample")(jobs.sample)
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


@cache
def command_tree() -> Any:
    """What `app` declares, put together: Typer would do it for each call of `app`, and takes longer than a command."""
    return typer.main.get_command(app)


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
    own_command = tuple(context.obj or (sys.executable, "-m", "stationmaster"))
    context.obj = Options(as_json=as_json, home=home, log_level=log_level, environ=os.environ, own_command=own_command)
