"""The table of commands, and the options that all of them share.

`stationmaster --help` needs only the table: a command's module is imported when the command runs, so it may import
everything that it needs at its top.
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
from typer.core import TyperCommand

from stationmaster import __version__
from stationmaster.cli.context import Options, given_path, require_this_computer
from stationmaster.cli.help_pages import NamedCommands, PageCommand, option_words, page_width, section, value_help
from stationmaster.cli.speaking import speak
from stationmaster.errors import UserError
from stationmaster.event_log import LEVELS
from stationmaster.near_names import did_you_mean


class Command(NamedTuple):
    """One line of the table."""

    name: str
    #: Module of this package, and in it the command's function or, for a group of commands, its Typer app.
    place: str
    #: The first line of the command's own help.
    summary: str
    #: Module and name of a class that builds the command; that of `help_pages` by default.
    built_by: str | None = None
    hidden: bool = False
    #: Whether it acts on this computer only, and so refuses to run with `--server`.
    needs_here: bool = False


#: The commands as the help groups them.
GROUPS: dict[str, tuple[Command, ...]] = {
    "Train": (
        Command("demo", "demo:demo", "Train a tiny LoRA on a simulated Vast.ai on this computer.", needs_here=True),
        Command(
            "train",
            "train:train",
            "Train a model; asks you to confirm the price first.",
            built_by="recipe_options:RecipeCommand",
        ),
        Command(
            "estimate",
            "estimate:estimate",
            "Estimate a training's time, cost and GPU memory; rents nothing.",
            built_by="recipe_options:RecipeCommand",
        ),
        Command("retry", "retry:retry", "Submit an ended job again, as a new job at today's price."),
        Command("adopt", "adopt:adopt", "Watch a training that was started by hand, and fetch its model."),
        Command("stop", "jobs:stop", "Stop a training and keep its best checkpoint."),
        Command("cancel", "jobs:cancel", "Cancel a job and release its machine at once."),
        Command("save", "requests:save", "Have a running training write a checkpoint now."),
        Command("sample", "requests:sample", "Have a running training make samples now."),
        Command("pull", "jobs:pull", "Copy a job's model, samples and logs to a folder."),
    ),
    "Watch": (
        Command("jobs", "jobs:app", "List jobs, newest first."),
        Command("show", "jobs:show", "Show a job's state, stage, progress, cost and machines."),
        Command("watch", "watch:watch", "Watch all jobs, or one, live."),
        Command("logs", "logs:logs", "Print a job's log: all attempts and steps, in order."),
        Command("metrics", "metrics:metrics", "Show a training's series: loss, step time, GPU and memory."),
        Command("analyze", "analyze:analyze", "Show what a training wasted or died of, and what to change."),
        Command("compare", "compare:compare", "Compare jobs: what differed, and what came of it."),
        Command("parse", "parse:parse", "Summarize a training log: step, loss, checkpoints, errors."),
        Command("replay", "replay:replay", "Replay a recorded run through the stall detector."),
    ),
    "Machines": (
        Command("offers", "offers:offers", "List what you can rent now, best first."),
        Command("instances", "sweep:instances", "List all machines of all providers, and what a sweep would do."),
        Command(
            "monitor", "monitor:monitor", "Watch rented machines: progress, health, cost and logs.", needs_here=True
        ),
        Command("sweep", "sweep:sweep", "Find rented machines that no job needs."),
        Command("ssh", "jobs:ssh", "Open a shell on a job's machine.", needs_here=True),
        Command("keys", "keys:app", "Set up the SSH key for rented machines; pin host keys.", needs_here=True),
    ),
    "Data and recipes": (
        Command("dataset", "dataset:app", "Check or pack a dataset before you spend money."),
        Command("recipes", "recipes:app", "List, show, check and create recipes."),
        Command("models", "models:app", "List, show, publish and download trained models."),
    ),
    "Money and people": (
        Command("costs", "costs:costs", "List what machines cost, as estimated or as billed."),
        Command("users", "users:app", "Manage the people who own jobs and get notifications."),
        Command("tokens", "tokens:app", "Manage tokens, which programs send to the HTTP service."),
        Command("notify", "notify:app", "Send test notifications, and read the inbox."),
        Command("audit", "audit:audit", "List who changed what through the HTTP service, newest first."),
        # Hidden: most installations do not use credits.
        Command("credits", "credits:app", "Manage the prepaid credits of users.", hidden=True),
    ),
    "Run it": (
        Command("init", "init:init", "Write a config file, after a few questions.", needs_here=True),
        Command("up", "services:up", "Run worker, sweeps and the page until Ctrl-C.", needs_here=True),
        Command("serve", "services:serve", "Serve the page, the API and uploads from machines.", needs_here=True),
        Command("worker", "services:worker", "Run a worker in this terminal.", needs_here=True),
        Command("sweeper", "services:sweeper", "Destroy machines that no job needs, at an interval.", needs_here=True),
        Command(
            "simulator", "simulator:simulator", "Simulate Vast.ai on this computer; needs no account.", needs_here=True
        ),
        Command("doctor", "doctor:doctor", "Check this computer, settings, store, accounts, channels."),
        Command("store", "store:app", "Show, check and back up the store.", needs_here=True),
        Command("trust", "trust:trust", "Trust the settings files in the current folder."),
        Command("completion", "completion.command:completion", "Print or install completion for bash, zsh or fish."),
    ),
}
COMMANDS = tuple(line for lines in GROUPS.values() for line in lines)


_HELP_OPTIONS = ("-h", "--help")


class LazyCommand(TyperCommand):
    """One command, with as much as help and completion need; running it imports and runs the command itself."""

    def __init__(self, line: Command) -> None:
        super().__init__(line.name, help=line.summary, hidden=line.hidden, rich_markup_mode=None)
        self._line = line

    @cached_property
    def loaded(self) -> Any:
        """The command itself, or the group of commands."""
        target = _find(self._line.place)
        # Typer builds a command only within an app; the callback makes the app a group even with a single command.
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.callback()(_no_options)
        if isinstance(target, typer.Typer):
            app.add_typer(target, name=self._line.name, hidden=self._line.hidden)
        else:
            built_by = _find(self._line.built_by) if self._line.built_by else PageCommand
            app.command(self._line.name, cls=built_by, hidden=self._line.hidden)(target)
        return typer.main.get_group(app).commands[self._line.name]

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Import the command and hand over to it, to run it, to print its help or to complete its arguments."""
        asks_for_help = any(word in _HELP_OPTIONS for word in args)  # of a command in a group, too
        context = self.loaded.make_context(info_name, args, parent=parent, **extra)
        if self._line.needs_here and not asks_for_help and not context.resilient_parsing:
            require_this_computer(context, self._line.name)
        if not gc.isenabled():  # `main` disabled it; from here on there may be garbage, but not among the imports
            gc.freeze()
            gc.enable()
        return context


def _find(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(f"stationmaster.cli.{module}"), name)


def _no_options() -> None:
    pass


class CommandTable(NamedCommands):
    """The program's commands, none of them imported yet."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for line in COMMANDS:
            self.add_command(LazyCommand(line))

    def get_help(self, ctx: Any) -> str:
        return _root_page(self, ctx)


def _root_page(table: Any, context: Any) -> str:
    width = page_width()
    lines = ["Usage: stationmaster COMMAND [OPTIONS]", "", str(table.help), ""]
    longest = max(len(line.name) for line in COMMANDS)
    for title, group in GROUPS.items():
        lines += section(title, [(line.name, line.summary) for line in group if not line.hidden], width, column=longest)
    options = [one for one in table.get_params(context) if not one.hidden]
    lines += section("Options", [(option_words(one), value_help(one)) for one in options], width)
    lines += ["Help on one command: stationmaster COMMAND --help", "Start with: stationmaster demo"]
    return "\n".join(lines)


app = typer.Typer(
    name="stationmaster",
    cls=CommandTable,
    help="Runs your trainings on rented GPUs and downloads the models.",
    add_completion=False,  # `stationmaster completion` does it
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": list(_HELP_OPTIONS)},
)


@cache
def command_tree() -> Any:
    """The commands of `app`, built once: Typer builds them for each call, which takes longer than a command."""
    return typer.main.get_command(app)


def loaded_tree() -> Any:
    """The same with every command imported, to inspect all options."""
    tree: Any = typer.main.get_command(app)
    for name, command in command_tree().commands.items():
        tree.add_command(command.loaded, name)
    return tree


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stationmaster {__version__}")
        raise typer.Exit


def _known_level(value: str | None) -> str | None:
    """Raises UserError: without this, only some commands would find a wrong level."""
    if value is not None and value.upper() not in LEVELS:
        hint = did_you_mean(value, LEVELS) or f"use one of: {', '.join(LEVELS)}"
        raise UserError(f"--log-level: {value} is not a level", hint=hint)
    return None if value is None else value.upper()


@app.callback()
def _global_options(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON where the command supports it.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only the result: no notes, progress or next steps.")
    ] = False,
    home: Annotated[
        Path | None, typer.Option(parser=given_path, help="Folder of all local data.", show_default=False)
    ] = None,
    log_level: Annotated[
        str | None,
        typer.Option(
            help="DEBUG, INFO, WARNING or ERROR. Default: only errors; for services the setting log_level.",
            callback=_known_level,
            show_default=False,
        ),
    ] = None,
    server: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Ask this `stationmaster serve` instead.", show_default=False),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    # -P: without it, a `stationmaster` in the current folder would be run instead of this one.
    speak(os.environ, quiet=quiet)
    own_command = tuple(context.obj or (sys.executable, "-P", "-m", "stationmaster"))
    context.obj = Options(
        as_json=as_json,
        home=home,
        log_level=log_level,
        server=server,
        environ=os.environ,
        own_command=own_command,
    )
