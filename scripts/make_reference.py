"""Generates the reference pages from the code: commands, settings, exit codes, states, recipe schema, JSON, HTTP API;
and the table of commands that completion reads.

`python -m scripts.make_reference` writes them; with `--check` it writes nothing and exits 1 if one is out of date.
"""

from __future__ import annotations

import argparse
import inspect
import io
import json
import sys
import tokenize
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from typer.core import TyperArgument, TyperGroup, TyperOption

from scripts.api_page import api_page
from scripts.json_page import json_page
from stationmaster import errors, model
from stationmaster.cli.commands import GROUPS, loaded_tree
from stationmaster.cli.completion.described import table_text
from stationmaster.cli.completion.table import FILE as COMPLETION_TABLE
from stationmaster.cli.help_pages import argument_in_usage, argument_word, option_words
from stationmaster.cli.render import EXIT_CODES
from stationmaster.config import PREFIX, SEED_NAMES
from stationmaster.durations import format_duration, parse_duration
from stationmaster.lifecycle import MEANINGS, MOVES, REASONS, STAGES, Payer
from stationmaster.model import Outcome, Reason, State
from stationmaster.money import MicroDollars, format_dollars, from_dollars
from stationmaster.recipes.field_texts import field_texts
from stationmaster.recipes.schema import json_schema
from stationmaster.settings import Settings
from stationmaster.settings.untrusted import CHOICES, KEYS

_ROOT = Path(__file__).resolve().parent.parent
REFERENCE = _ROOT / "docs" / "reference"
_MADE = "<!-- Made from the code by `make docs`; edit the code, not this page. -->"

OTHER_EXIT_CODES: dict[int, str] = {
    1: "Another error; the message describes it. Also: a check of `doctor` failed.",
    2: "The command line is not valid, or the request cannot be carried out as given.",
    70: "A bug in Stationmaster. The message names a file with the traceback: please report it.",
    130: "Interrupted by Ctrl-C. Trainings continue.",
}


@cache
def pages() -> dict[str, str]:
    """File name and text of every generated page."""
    return {
        "api.md": api_page(_MADE),
        "cli.md": cli_page(),
        "settings.md": settings_page(),
        "exit-codes.md": exit_codes_page(),
        "json.md": json_page(_MADE),
        "states.md": states_page(),
        "recipe.schema.json": json.dumps(json_schema(), indent=2) + "\n",
    }


def files() -> dict[Path, str]:
    """Everything that is generated: the pages, and the table that completion reads."""
    return {**{REFERENCE / name: text for name, text in pages().items()}, COMPLETION_TABLE: table_text(loaded_tree())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 if a page is out of date")
    check = parser.parse_args().check
    stale = {path: text for path, text in files().items() if _read(path) != text}
    for path, text in stale.items():
        name = path.relative_to(_ROOT)
        if check:
            print(f"{name} is out of date: run `make docs`")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {name}")
    return 1 if check and stale else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def cli_page() -> str:
    root = loaded_tree()
    lines = [
        _MADE,
        "# Commands",
        "",
        "Every command ends with a documented [exit code](exit-codes.md); errors are one line and a `hint:`.",
        "A JOB is the id of a job (or its beginning), or its name.",
        "",
        "Shell completion: `stationmaster --install-completion`.",
        "",
        "Options before the command:",
        "",
        *_options_table(root),
    ]
    for title, group in GROUPS.items():
        lines += ["", f"## {title}"]
        for line in group:
            for path, command in _commands(root, "stationmaster", line.name):
                lines += ["", *_command(path, command)]
    return "\n".join(lines) + "\n"


def _commands(group: Any, path: str, name: str) -> Iterator[tuple[str, Any]]:
    command, path = group.commands[name], f"{path} {name}"
    if not isinstance(command, TyperGroup) or command.invoke_without_command:
        yield path, command
    for inner in getattr(command, "commands", ()):
        yield from _commands(command, path, inner)


def _command(path: str, command: Any) -> Iterator[str]:
    words, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
    arguments = " ".join(argument_in_usage(each) for each in command.params if isinstance(each, TyperArgument))
    yield f"### `{' '.join(filter(None, (path, arguments)))}`"
    yield ""
    yield " ".join(words.split())
    yield ""
    yield "```sh"
    yield from (line.strip() for line in examples.splitlines() if line.strip())
    yield "```"
    if command.params:
        yield ""
        yield from _options_table(command)


def _options_table(command: Any) -> Iterator[str]:
    yield "| option | meaning | default |"
    yield "|---|---|---|"
    for parameter in command.params:
        if isinstance(parameter, TyperArgument):
            text = getattr(parameter, "help", None) or ""
            yield f"| `{argument_word(parameter)}` | {_cell(text)} | |"
        elif isinstance(parameter, TyperOption) and not parameter.hidden and "completion" not in parameter.opts[0]:
            words, meaning = _cell(option_words(parameter)), _cell(_option_help(parameter))
            yield f"| `{words}` | {meaning} | {_option_default(parameter)} |"


def _option_help(option: TyperOption) -> str:
    text = option.help or ""
    if not isinstance(option.default, Enum):
        return text
    return f"{text} One of: {', '.join(str(one.value) for one in type(option.default))}."


def _option_default(option: TyperOption) -> str:
    default = option.default
    if default in (None, False, "", ()) or callable(default) or repr(default).startswith("Sentinel"):
        return ""
    return f"`{default.value if isinstance(default, Enum) else default}`"


def settings_page() -> str:
    lines = [
        _MADE,
        "# Settings",
        "",
        "A later source wins: defaults, the config file, `.env` in the current folder, the environment, the command",
        "line.",
        "",
        "`stationmaster init` writes a config file with every setting and its meaning in it.",
        "",
        "- The config file is the one in `STATIONMASTER_CONFIG`, else `config.toml` (or `.yaml`, `.yml`) in the home,",
        "  else `stationmaster.toml` (or `.yaml`, `.yml`) in the current folder. Sections are tables: `worker.slots`",
        "  is `slots` under `[worker]`.",
        "- `.env` and `stationmaster.toml` in the current folder take effect only after you ran `stationmaster trust`",
        "  there, and again after each change: they may come with a repository that someone else wrote, and settings",
        "  can run commands. Until then, commands refuse to run there. Only harmless choices need no trust: "
        + ", ".join(f"`{name}`" for name in sorted(CHOICES))
        + ";",
        "  and, by value, keys in a home whose config file sets no other and that trusts no file yet: "
        + ", ".join(f"`{name}`" for name in sorted(KEYS))
        + ". Files in the home need no trust.",
        "- In the environment, `worker.slots` is `STATIONMASTER_WORKER__SLOTS`. Append `_FILE` to a name to read the",
        "  value from a file, `_COMMAND` to read it from a command's output (for secrets: no shell, 30 seconds).",
        "- A list is words separated by commas (folders: by the system's path separator) or JSON; a table is JSON.",
        "- A duration is a number of seconds, or text such as `45s`, `15m`, `4h`, `1h30m`. Money is in dollars.",
        "- An unknown name is an error, with the nearest setting as a hint; so is a value out of range. A setting of",
        "  an earlier version is ignored, with one warning line on standard error.",
        "",
        "Running workers and sweepers reread the files. A worker does so before it claims jobs, so each job's next",
        "visit uses the current settings. If a file has an error, the worker keeps the old settings and raises an",
        "alert. Changes of `home`, `database_url`, `log_level` and of the worker's environment take effect when it",
        "restarts. If `train` or `retry` runs with other settings than the background worker, a new worker replaces",
        "it. A job's own limits stay as submitted.",
        "",
        "A job file may have a `monitoring` block, which is merged over the `monitoring.*` settings below. It may also",
        "use the names `gracePeriod` and `pollInterval` (in milliseconds) and `stallDetection`. The same block is read",
        "from `config.process[].monitoring` of a trainer's config; the job file's own `monitoring` wins.",
        "",
        "| setting | environment | meaning | default |",
        "|---|---|---|---|",
        *(_setting_row(name, info) for name, info in settings()),
        "",
        "Names without the prefix that are read, too; the name with the prefix wins if both are set:",
        "",
        "| environment | setting |",
        "|---|---|",
        *(f"| `{variable}` | `{name}` |" for variable, name in SEED_NAMES.items()),
    ]
    return "\n".join(lines) + "\n"


def settings(section: type[BaseModel] = Settings, path: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its dotted name. An item of a list of sections is named with [] after the list."""
    texts = field_texts(section)
    for name, declared in section.model_fields.items():
        dotted, info = f"{path}{name}", copy(declared)
        info.description = texts.get(name)
        inner = _section_of(info.annotation)
        if inner is None:
            yield dotted, info
        elif isinstance(info.annotation, type):
            yield from settings(inner, f"{dotted}.")
        else:
            yield dotted, info
            yield from settings(inner, f"{dotted}[].")


def _section_of(annotation: Any) -> type[BaseModel] | None:
    kinds = (annotation, *get_args(annotation))
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _setting_row(name: str, info: FieldInfo) -> str:
    variable = "" if "[]" in name else f"`{PREFIX}{name.upper().replace('.', '__')}`"
    return f"| `{name}` | {variable} | {_cell(info.description or '')} | {_setting_default(info)} |"


def _setting_default(info: FieldInfo) -> str:
    value = info.get_default(call_default_factory=True)
    if info.is_required():
        return "the platform's data folder" if info.annotation is Path else "required"
    if value in (None, ""):
        return "not set"
    if value in ((), {}):
        return "none"
    if _is_read_by(info, parse_duration):
        return f"`{format_duration(value)}`"
    if _is_read_by(info, from_dollars):
        return f"`{format_dollars(MicroDollars(value))}`"
    if isinstance(value, tuple):
        return f"`{','.join(str(one) for one in value)}`"
    assert not isinstance(value, SecretStr), "a secret has no default"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _is_read_by(info: FieldInfo, function: Callable[..., Any]) -> bool:
    return any(getattr(one, "func", None) is function for one in info.metadata)


def exit_codes_page() -> str:
    outcomes: Mapping[int, str] = {code: _outcome_words(outcome) for outcome, code in EXIT_CODES.items() if code}
    classes = {kind.exit_code: kind for kind in _error_classes() if kind.exit_code not in (0, 1, 2)}
    rows = {
        0: "Success. Also: a request that changes nothing, such as stopping a job that has ended, and an empty list, "
        "such as `offers` when nothing fits.",
        **OTHER_EXIT_CODES,
        **{code: " ".join((kind.__doc__ or "").split()) for code, kind in classes.items()},
        **outcomes,
    }
    lines = [
        _MADE,
        "# Exit codes",
        "",
        "`train --watch`, `watch` and `demo` end with the code of the job's outcome (0, and those from 40 on).",
        "",
        "| code | meaning |",
        "|--:|---|",
        *(f"| {code} | {rows[code]} |" for code in sorted(rows)),
    ]
    return "\n".join(lines) + "\n"


def _error_classes() -> list[type[errors.StationmasterError]]:
    """Error classes that define an exit code; a subclass that does not is covered by its parent."""
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and "exit_code" in vars(kind)]
    return [kind for kind in found if issubclass(kind, errors.StationmasterError)]


def _outcome_words(outcome: Outcome) -> str:
    text = {
        Outcome.INCOMPLETE: "The job ended early; its best checkpoint is kept (INCOMPLETE).",
        Outcome.FAILED: "The job failed (FAILED).",
        Outcome.FAILED_PROVISIONING: "No machine could be rented (FAILED_PROVISIONING).",
        Outcome.CANCELLED: "The job was cancelled (CANCELLED).",
    }
    return text[outcome]


def states_page() -> str:
    lines = [
        _MADE,
        "# States, outcomes, reasons",
        "",
        "Where a job is, how it ended, and why are three fields: `state`, `outcome`, `reason`. Commands show the",
        "outcome if there is one, `NEEDS_RECOVERY` while the job's worker or machine is out of reach, else the state.",
        "",
        "| state | what is true | leaves by |",
        "|---|---|---|",
        *(f"| {state} | {_meaning(State, state)} | {_ways_out(state)} |" for state in State),
        "",
        "The outcome is set when a job enters RELEASING for the last time, and never changes.",
        "",
        "| outcome | meaning |",
        "|---|---|",
        *(f"| {outcome} | {_meaning(Outcome, outcome)} |" for outcome in Outcome),
        "",
        "For people the way of a job has ten stages; `stage` is the last one that it reached.",
        "",
        "| stage | reached when |",
        "|---|---|",
        *(f"| {stage} | {_STAGE_MEANINGS[stage]} |" for stage in STAGES),
        "",
        "A job gets up to 3 attempts that fail before the login and 3 that fail after it, and only where the reason is",
        "retried. Who pays matters where billing is on: an attempt that failed through our fault, or that used no GPU,",
        "is not charged.",
        "",
        "| reason | meaning | outcome | retried | who pays |",
        "|---|---|---|---|---|",
        *(_reason_row(reason) for reason in Reason),
    ]
    return "\n".join(lines) + "\n"


def _ways_out(state: State) -> str:
    return (
        ", ".join(f"{move} to {target}" for (source, move), target in MOVES.items() if source is state) or "never left"
    )


def _reason_row(reason: Reason) -> str:
    follows = REASONS[reason]
    again, payer = ("yes" if follows.may_try_again else "no"), _PAYERS[follows.pays]
    return f"| {reason} | {MEANINGS[reason]} | {follows.outcome} | {again} | {payer} |"


_PAYERS = {Payer.USER: "you", Payer.CANCELLER: "you, at least a tenth of the hold", Payer.NONE: "not charged"}

_STAGE_MEANINGS = {
    "queued": "it was accepted",
    "claimed": "a worker took it and looks for a machine",
    "provisioned": "its machine answers; the dataset is being sent",
    "dataset synced": "the dataset was verified on the machine; the steps before the training run",
    "training": "the training has started",
    "model uploaded": "the model is verified off the machine",
    "samples": "samples and logs are there too; samples and card are being published, if they are to be",
    "registered": "the model is in the catalogue and, if it is to be, registered (ComfyDeploy)",
    "instance terminated": "every machine of it is confirmed gone; the last stage of a job that did not complete",
    "completed": "its outcome is COMPLETED",
}

_OUTCOME_MEANINGS = {
    Outcome.COMPLETED: "the training finished and the model is safe",
    Outcome.FAILED: "the training failed, or nothing of it could be saved",
    Outcome.CANCELLED: "a user ran `cancel`; nothing is kept unless `--keep` was given",
}


def _meaning(kind: type[Enum], member: Any) -> str:
    """The comment beside an enum's member."""
    text = _comments(kind).get(member.name) or _OUTCOME_MEANINGS[member]
    return _cell(text)


def _comments(kind: type[Enum]) -> dict[str, str]:
    source = inspect.getsource(inspect.getmodule(kind) or model)
    start = source.index(f"class {kind.__name__}(")
    lines = source[start:].split("\n\n\n")[0]
    found: dict[str, str] = {}
    name = ""
    for token in tokenize.generate_tokens(io.StringIO(lines + "\n").readline):
        if token.type == tokenize.NAME and token.start[1] == 4:
            name = token.string
        if token.type == tokenize.COMMENT:
            found[name] = token.string.removeprefix("# ")
    return found


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
