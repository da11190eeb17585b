"""Runs a training script of kohya's sd-scripts and records it: python3 -m trackside.integrations.kohya SCRIPT ARGUMENT…

With accelerate: `accelerate launch -m trackside.integrations.kohya SCRIPT ARGUMENT…`. The script's files, arguments,
exit code and signals stay as they are.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack
from importlib import import_module
from types import ModuleType
from typing import Any, Mapping, Sequence

from trackside.collector import Run
from trackside.integrations.kohya_training import KohyaTraining
from trackside.integrations.quiet_hooks import quiet


def main(arguments: Sequence[str]) -> None:
    """Run the script in this process, as Python would run it, and record its training."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if not options.command:
        parser.error("name the script to run")
    script, given = options.command[0], options.command[1:]
    with ExitStack() as stack:
        training = _begin(options, given)
        if training is not None:
            stack.push(training.run)  # writes the end of the training, and before it an error of memory
            stack.callback(training.finish)
        run_script(script, given)


def run_script(script: str, arguments: Sequence[str]) -> None:
    """Run a script as the `__main__` of this process, which it remains: processes that it spawns look for it there."""
    with open(script, "rb") as file:
        code = compile(file.read(), script, "exec")
    module = ModuleType("__main__")
    vars(module).update(__file__=script, __cached__=None, __builtins__=__builtins__)
    sys.modules["__main__"] = module
    sys.argv = [script, *arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.path.dirname(os.path.abspath(script))
    exec(code, vars(module))


def script_config(arguments: Sequence[str]) -> dict[str, Any]:
    """Return the script's settings: those of its `--config_file`, whose sections mean nothing, and its arguments."""
    given: dict[str, Any] = {}
    name = ""
    for word in arguments:
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
            given[name] = value or True
        elif name:
            given[name] = word
    return {**_file_config(str(given.get("config_file", ""))), **given}


@quiet
def _begin(options: argparse.Namespace, given: Sequence[str]) -> KohyaTraining | None:
    config = script_config(given)
    steps = config.get("max_train_steps")
    run = Run(config=config, framework="kohya", total_steps=None if steps is None else int(steps))
    training = KohyaTraining(run, batch_size=options.batch_size)
    training.change_imports()
    return training


def _file_config(path: str) -> Mapping[str, Any]:
    """The settings of a TOML file, as sd-scripts reads it; empty if it cannot be read here."""
    if not path:
        return {}
    path = path if path.endswith(".toml") else path + ".toml"
    flat: dict[str, Any] = {}
    try:
        for name, value in _read_toml(path).items():
            flat.update(value if isinstance(value, dict) else {name: value})
    except (ImportError, OSError, ValueError):
        return {}
    return flat


def _read_toml(path: str) -> Mapping[str, Any]:
    try:
        toml = import_module("tomllib")  # since Python 3.11
    except ImportError:
        toml = import_module("toml")  # sd-scripts needs it
    with open(path, encoding="utf-8") as file:
        found: Mapping[str, Any] = toml.loads(file.read())
    return found


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m trackside.integrations.kohya", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--batch-size", type=int, help="recorded with each step; the script does not log it")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="SCRIPT ARGUMENT…")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
