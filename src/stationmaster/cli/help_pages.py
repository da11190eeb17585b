"""The help of every command: usage, what it does, examples, arguments and options. No line is cut off.

`stationmaster --help` imports this module, so it needs nothing but Typer.
"""

from __future__ import annotations

import inspect
import shutil
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

from stationmaster.errors import UserError
from stationmaster.near_names import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])

_WIDEST = 100  # longer lines are hard to read
_NARROWEST = 40
_FIRST_COLUMN = 26

#: The word that stands for an option's value, the same in every command.
VALUE_WORDS = {
    "--account": "NAME",
    "--api-key": "KEY",
    "--as": "NAME",
    "--backend": "NAME",
    "--columns": "N",
    "--control": "DIR",
    "--count": "N",
    "--credit": "DOLLARS",
    "--discord-id": "ID",
    "--email": "ADDRESS",
    "--expires": "DATE",
    "--faults": "FILE",
    "--fix": "DIR",
    "--framework": "NAME",
    "--from": "NUMBER",
    "--gpus": "N",
    "--home": "DIR",
    "--host": "ADDRESS",
    "--hours": "HOURS",
    "--id": "ID",
    "--images": "N",
    "--installation": "ID",
    "--interval": "SECONDS",
    "--job": "JOB",
    "--limit": "N",
    "--log-level": "LEVEL",
    "--max-hours": "HOURS",
    "--max-price": "DOLLARS",
    "--max-spend": "DOLLARS",
    "--message": "TEXT",
    "--min-images": "N",
    "--min-rows": "N",
    "--min-side": "PIXELS",
    "--mute": "KIND",
    "--name": "NAME",
    "--owner": "NAME",
    "--pace": "SECONDS",
    "--port": "PORT",
    "--provider": "NAME",
    "--quiet-hours": "FROM-TO",
    "--rate-limits": "FACTOR",
    "--reason": "TEXT",
    "--recipe": "RECIPE",
    "--seed": "N",
    "--set": "NAME=VALUE",
    "--since": "DATE",
    "--speed": "FACTOR",
    "--steps": "N",
    "--table": "NAME",
    "--telegram-id": "ID",
    "--time-zone": "ZONE",
    "--to": "NUMBER",
    "--trigger": "WORD",
    "--unmute": "KIND",
    "--user": "NAME",
}
_EVERYWHERE = "Options of every command (--home, --log-level, --quiet, --server): see `stationmaster --help`."


class PageCommand(TyperCommand):
    """A command whose help is a page of ours."""

    def get_help(self, ctx: Any) -> str:
        return command_page(self, ctx, width=page_width())


class NamedCommands(TyperGroup):
    """A group that answers a wrong name of a command with the one that was probably meant."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            known = [each for each, command in self.commands.items() if not command.hidden]
            near = did_you_mean(name, known, f"{ctx.command_path} {{}}")
            raise UserError(f"no such command '{name}'", hint=near or f"run {ctx.command_path} -h")
        return super().resolve_command(ctx, args)


class PageGroup(NamedCommands):
    """The same for a group of commands."""

    def get_help(self, ctx: Any) -> str:
        return command_page(self, ctx, width=page_width())


class CommandGroup(typer.Typer):
    """A group of commands: all of them, and the group itself, have pages of ours."""

    def __init__(self, **settings: Any) -> None:
        usual: dict[str, Any] = {"cls": PageGroup, "no_args_is_help": True, "rich_markup_mode": None}
        super().__init__(**{**usual, **settings})

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Function], Function]:
        return super().command(name, **{"cls": PageCommand, **settings})


def page_width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def command_page(command: Any, context: Any, *, width: int) -> str:
    """The help of one command, or of a group."""
    about, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
    parameters = command.get_params(context)
    arguments = [one for one in parameters if one.param_type_name == "argument"]
    options = [one for one in parameters if one.param_type_name == "option" and not one.hidden]
    lines = [*_wrapped(usage(command, context.command_path, arguments), width, hanging=7), ""]
    lines += _paragraphs(about, width)
    if examples.strip():
        lines += ["Examples:", *(_example(line, width) for line in examples.splitlines() if line.strip()), ""]
    if hasattr(command, "commands"):
        lines += section("Commands", commands_of(command), width)
    lines += section("Arguments", [(argument_word(one), value_help(one)) for one in arguments], width)
    lines += section("Options", [(option_words(one), value_help(one)) for one in options], width)
    lines += _wrapped(_EVERYWHERE, width)
    return "\n".join(lines)


def usage(command: Any, path: str, arguments: Sequence[Any]) -> str:
    words = [argument_in_usage(one) for one in arguments]
    if hasattr(command, "commands"):
        words.append("[COMMAND]" if command.invoke_without_command else "COMMAND")
    return " ".join(["Usage:", path, *words, "[OPTIONS]"])


def commands_of(group: Any) -> list[tuple[str, str]]:
    """Each command with the first line of its help."""
    return [(name, _first_line(one.help)) for name, one in group.commands.items() if not one.hidden]


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def section(title: str, rows: Sequence[tuple[str, str]], width: int, *, column: int = 0) -> list[str]:
    """A title and two columns, the first at least as wide as `column`; an empty section has no lines.

    >>> print("\\n".join(section("Options", [("-a, --all", "Also show ended jobs.")], 80)), end="")
    Options:
      -a, --all  Also show ended jobs.
    """
    if not rows:
        return []
    column = min(_FIRST_COLUMN, width // 3, max(column, *(len(first) for first, _ in rows)))
    return [f"{title}:", *(line for row in rows for line in _row(*row, column=column, width=width)), ""]


def _row(first: str, second: str, *, column: int, width: int) -> Iterator[str]:
    indent = " " * (column + 4)
    lines = textwrap.wrap(second, width - len(indent), break_on_hyphens=False, break_long_words=False) or [""]
    if len(first) > column:
        yield f"  {first}"
        yield from (indent + line for line in lines)
        return
    yield f"  {first:<{column}}  {lines[0]}".rstrip()
    yield from (indent + line for line in lines[1:])


def argument_in_usage(argument: Any) -> str:
    return argument_word(argument) if argument.required else f"[{argument_word(argument)}]"


def argument_word(argument: Any) -> str:
    word = str(argument.metavar or (argument.name or "").upper()).strip("[]")
    return f"{word}..." if argument.nargs != 1 else word


def option_words(option: Any) -> str:
    """An option as it is typed: `-a, --all`, `--steps N`, `--web/--no-web`."""
    names = ", ".join(sorted(option.opts, key=lambda name: name.startswith("--")))
    if option.secondary_opts:
        return f"{names}/{'/'.join(option.secondary_opts)}"
    return names if option.is_flag else f"{names} {value_word(option)}"


def value_word(option: Any) -> str:
    name = next(name for name in option.opts if name.startswith("--"))
    return str(option.metavar or VALUE_WORDS.get(name) or name.lstrip("-").upper())


def value_help(parameter: Any) -> str:
    text = parameter.help or ""
    default = parameter.default
    if not parameter.show_default or default in (None, False, "", (), []) or getattr(parameter, "is_flag", False):
        return text
    if parameter.param_type_name == "argument" or callable(default):
        return text
    return f"{text} [default: {getattr(default, 'value', default)}]"


def _example(text: str, width: int) -> str:
    """A command, also where it is too long for one line, as a shell takes it."""
    lines = textwrap.wrap(text.strip(), width - 6, break_on_hyphens=False, break_long_words=False)
    return "  " + " \\\n    ".join(lines)


def _paragraphs(text: str, width: int) -> Iterator[str]:
    for paragraph in text.strip().split("\n\n"):
        yield from _wrapped(" ".join(paragraph.split()), width)
        yield ""


def _wrapped(text: str, width: int, *, hanging: int = 0) -> Iterable[str]:
    return textwrap.wrap(text, width, subsequent_indent=" " * hanging, break_on_hyphens=False, break_long_words=False)
