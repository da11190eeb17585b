"""The table of commands, and the options that all of them share.

`stationmaster --help` is made from the table alone: a command's module is imported when the command is run, so it may
import at its top whatever it needs.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from functools import cache, cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from stationmaster import __version__
from stationmaster.cli.context import Options


class Command(NamedTuple):
    """One line of the table."""

    name: str
    #: Module of this package, and in it the command's function or, for a group of commands, its Typer app.
    place: str
    #: The first line of the command's own help.
    summary: str
    #: Module and name of a class that builds the command; Typer's own by default.
    built_by: str | None = None
    hidden: bool = False


COMMANDS = (
    Command(
        "demo",
        "demo:demo",
        "Train a tiny LoRA on a machine rented from a simulated Vast.ai on this computer, watched to the end.",
    ),
    Command(
        "train",
        "train:train",
        "Train a model: the price is shown and asked for before anything is rented.",
        built_by="recipe_options:RecipeCommand",
    ),
    Command(
        "estimate",
        "estimate:estimate",
        "Estimate time and cost by the recipe, by earlier runs like it, and by what can be rented now; nothing is "
        "rented.",
        built_by="recipe_options:RecipeCommand",
    ),
    Command(
        "costs",
        "costs:costs",
        "List what machines cost: split into training, stalled and idle time; estimated, or as billed by the provider.",
    ),
    Command("show", "jobs:show", "Show how a job stands."),
    Command("logs", "logs:logs", "Print a job's log, all attempts and steps in order."),
    Command("watch", "watch:watch", "Show a job live until it has ended. The exit code tells how it went."),
    Command("stop", "jobs:stop", "Stop a training, keep its best checkpoint, give the machine back."),
    Command(
        "save",
        "jobs:save",
        "Have a running training write a checkpoint now; it comes home, and the training goes on.",
    ),
    Command(
        "sample",
        "jobs:sample",
        "Have a running training make samples now; they come home, and the training goes on.",
    ),
    Command(
        "cancel",
        "jobs:cancel",
        "Give the machine back at once; what is on it is lost unless --keep is given.",
    ),
    Command(
        "retry",
        "retry:retry",
        "Make a new job like an ended one, with its own attempts and outcome, at the price of today.",
    ),
    Command("ssh", "ssh:ssh", "Open a shell on a job's machine; on this computer, in the machine's folder."),
    Command("pull", "pull:pull", "Copy a job's model, samples and logs to a folder; each copy is verified."),
    Command("parse", "parse:parse", "Read a training log and print how the training stood at its end."),
    Command(
        "replay",
        "replay:replay",
        "Run the log parser and the stall detector over a recorded run and print what they report, with times.",
    ),
    Command(
        "monitor",
        "monitor:monitor",
        "Watch rented machines: progress, health, cost and the end of their logs. Without --once until Ctrl-C.",
    ),
    Command(
        "offers",
        "offers:offers",
        "List what can be rented now, best first: preferred GPUs, preferred regions, then the cheapest for the whole "
        "job.",
    ),
    Command(
        "instances",
        "sweep:instances",
        "List every machine of every provider: what the provider says, beside what we think.",
    ),
    Command(
        "sweep",
        "sweep:sweep",
        "Find rented machines that no job needs. Dry run unless --force is given.",
    ),
    Command("up", "services:up", "Run the worker with its sweeps in this terminal until Ctrl-C."),
    Command(
        "serve",
        "services:serve",
        "Answer over HTTP: whether all is well, and, where serve.public_url is set, machines that upload their models.",
    ),
    Command(
        "worker",
        "services:worker",
        "Run a worker in this terminal. TERM or Ctrl-C hands its jobs back at once; trainings do not notice.",
    ),
    Command(
        "sweeper",
        "services:sweeper",
        "Destroy machines that no job needs, at an interval. Needs no worker.",
    ),
    Command(
        "simulator",
        "simulator:simulator",
        "Rent machines without an account: the API of Vast.ai, and throw-away hosts with SSH on this computer.",
    ),
    Command(
        "doctor",
        "doctor:doctor",
        "Check settings, store, worker and tools. Exit code 1 if a check fails.",
    ),
    Command("jobs", "jobs:app", "List jobs, newest first."),
    Command("models", "models:app", "Models that were trained, and where they can be had."),
    Command("recipes", "recipes:app", "List, show, check and begin recipes."),
    Command("dataset", "dataset:app", "Look at a dataset before money is spent, or pack it."),
    Command("keys", "keys:app", "The SSH key for rented machines, and the host keys of your own."),
    Command("users", "users:app", "Manage the people who own jobs, and how notifications reach them."),
    # Hidden: most installations have no credits, and their users need not learn the word.
    Command("credits", "credits:app", "Prepaid credits of the users.", hidden=True),
    Command("notify", "notify:app", "Send test notifications, and read the inbox."),
)


class LazyCommand(TyperCommand):
    """A line of the table as far as help and completion need it; running it imports and runs the command itself."""

    def __init__(self, line: Command) -> None:
        super().__init__(line.name, help=line.summary, hidden=line.hidden, rich_markup_mode=None)
        self._line = line

    @cached_property
    def loaded(self) -> Any:
        """The command itself, or the group of commands."""
        target = _find(self._line.place)
        # Typer makes a command only within an app; the callback makes that app a group even if it has only this one.
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.callback()(_no_options)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=self._line.name, hidden=self._line.hidden)
        else:
            built_by = _find(self._line.built_by) if self._line.built_by else None
            app.command(self._line.name, cls=built_by, hidden=self._line.hidden)(target)
        return typer.main.get_group(app).commands[self._line.name]

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The way into a command, for running it, for its help and for completing its words: from here on it is the
        command itself that acts.
        """
        context = self.loaded.make_context(info_name, args, parent=parent, **extra)
        if not gc.isenabled():  # as `main` left it; from here on there may be garbage, but not among what was imported
            gc.freeze()
            gc.enable()
        return context


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"stationmaster.cli.{module}"), name)


def _no_options() -> None:
    pass


class CommandTable(TyperGroup):
    """The program's commands, none of them imported yet."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for line in COMMANDS:
            self.add_command(LazyCommand(line))


app = typer.Typer(
    name="stationmaster",
    cls=CommandTable,
    help="Runs your trainings on rented GPUs and brings the models home.",
    epilog="Start with: stationmaster demo",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@cache
def command_tree() -> Any:
    """What `app` declares, put together: Typer would do it for each call of `app`, and takes longer than a command."""
    return typer.main.get_command(app)


def loaded_tree() -> Any:
    """The same with every command imported, for whoever wants to look at all their options."""
    tree: Any = typer.main.get_command(app)
    for name, command in command_tree().commands.items():
        tree.add_command(command.loaded, name)
    return tree


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
