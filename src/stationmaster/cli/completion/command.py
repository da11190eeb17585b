"""`stationmaster completion`: print a shell's completion script, or install it."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import options_of
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.speaking import extra
from stationmaster.errors import UserError
from stationmaster.files import write_atomically
from stationmaster.near_names import did_you_mean

_SCRIPTS = Path(__file__).parent / "shells"
#: Where packages put what loads completions in bash, on Linux and with Homebrew.
_BASH_COMPLETION = (
    "/usr/share/bash-completion/bash_completion",
    "/opt/homebrew/etc/profile.d/bash_completion.sh",
    "/usr/local/etc/profile.d/bash_completion.sh",
)


class Shell(StrEnum):
    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_SHELLS = [shell.value for shell in Shell]


def completion(
    context: typer.Context,
    shell: Annotated[
        str | None,
        typer.Argument(metavar="[SHELL]", help="bash, zsh or fish. Default: $SHELL.", show_default=False),
    ] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Write the script to the folder that the shell reads.")
    ] = False,
) -> None:
    """Print or install completion for bash, zsh or fish.

    The TAB key then completes commands, options, recipes and their parameters, jobs, models, users and files. It
    reads only files of this computer.

    Examples:

      source <(stationmaster completion bash)

      stationmaster completion --install

      stationmaster completion fish | source
    """
    options = options_of(context)
    chosen = _shell(shell, options.environ)
    script = script_of(chosen)
    if not install:
        sys.stdout.write(script)
        return
    with as_the_person():
        path = installed_path(chosen, options.environ)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, script.encode())
    typer.echo(str(path))
    for step in _steps_left(chosen, path, options.environ):
        extra(step)


def script_of(shell: Shell) -> str:
    return (_SCRIPTS / f"stationmaster.{shell.value}").read_text(encoding="utf-8")


def installed_path(shell: Shell, environ: Mapping[str, str]) -> Path:
    """The file that the shell reads by itself; for zsh once its folder is in fpath."""
    home = Path(environ.get("HOME") or Path.home())
    match shell:
        case Shell.BASH:
            shared = Path(environ.get("XDG_DATA_HOME") or home / ".local/share")
            own = Path(environ.get("BASH_COMPLETION_USER_DIR") or shared / "bash-completion")
            return own / "completions" / "stationmaster"
        case Shell.FISH:
            return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "fish/completions/stationmaster.fish"
        case Shell.ZSH:
            return home / ".zfunc" / "_stationmaster"


def _shell(given: str | None, environ: Mapping[str, str]) -> Shell:
    name = given if given is not None else Path(environ.get("SHELL", "")).name
    if name in _SHELLS:
        return Shell(name)
    usual = f"name the shell: stationmaster completion {'|'.join(_SHELLS)}"
    if given is None:
        problem = f"there is no completion for the shell {name} of $SHELL" if name else "$SHELL is not set"
        raise UserError(problem, hint=usual)
    raise UserError(
        f"there is no completion for {given}", hint=did_you_mean(given, _SHELLS, "stationmaster completion {}") or usual
    )


def _steps_left(shell: Shell, path: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """What the person still has to do, a line each."""
    match shell:
        case Shell.BASH if not any(Path(place).exists() for place in _BASH_COMPLETION):
            yield "bash reads that file only with the package bash-completion, which was not found. Install it, or add"
            yield "this line to ~/.bashrc:"
            yield "  source <(stationmaster completion bash)"
        case Shell.ZSH:
            yield from _zsh_steps(path, environ)
    yield f"Start a new {shell.value} to use it."


def _zsh_steps(path: Path, environ: Mapping[str, str]) -> Iterator[str]:
    rc_file = Path(environ.get("ZDOTDIR") or environ.get("HOME") or Path.home()) / ".zshrc"
    try:
        written = rc_file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        written = ""
    lines = [
        line
        for word, line in (
            (path.parent.name, "fpath=(~/.zfunc $fpath)"),
            ("compinit", "autoload -Uz compinit && compinit"),
        )
        if word not in written
    ]
    if lines:
        yield f"Add {'these two lines' if len(lines) > 1 else 'this line'} to {rc_file}:"
        yield from (f"  {line}" for line in lines)
