"""The reference is complete and up to date."""

from __future__ import annotations

import importlib.util
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.render import EXIT_CODES, job_json
from stationmaster.lifecycle import MEANINGS, REASONS
from stationmaster.model import Alert, Checkpoint, Event, Reason
from stationmaster.station.jobs import JobView
from tests.support.programs import ROOT


def _make_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "scripts" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE_REFERENCE = _make_reference()
REFERENCE = ROOT / "docs" / "reference"
MADE = ["api.md", "cli.md", "exit-codes.md", "json.md", "recipe.schema.json", "settings.md", "states.md"]


@pytest.mark.parametrize("name", MADE)
def test_a_page_made_from_the_code_is_up_to_date(name: str) -> None:
    assert (REFERENCE / name).read_text(encoding="utf-8") == MAKE_REFERENCE.pages()[name], "run `make docs`"


def test_every_page_that_is_made_is_compared() -> None:
    assert sorted(MAKE_REFERENCE.pages()) == MADE


def test_every_setting_says_what_it_is_for() -> None:
    assert [name for name, info in MAKE_REFERENCE.settings() if not info.description] == []


def every_command() -> Iterator[tuple[str, Any]]:
    tree = loaded_tree()
    for name in tree.commands:
        yield from MAKE_REFERENCE._commands(tree, "stationmaster", name)


def test_every_verb_says_what_it_does_with_two_examples_or_more() -> None:
    for path, command in every_command():
        words, _, examples = inspect.cleandoc(command.help or "").partition("Examples:")
        assert words.strip(), path
        assert len(examples.split("\n\n")) > 2, path


def test_every_option_says_what_it_does() -> None:
    silent: list[Any] = [
        (path, parameter.name)
        for path, command in every_command()
        for parameter in command.params
        if not getattr(parameter, "help", None)
    ]
    assert silent == []


def test_every_reason_has_words_and_consequences() -> None:
    assert set(MEANINGS) == set(Reason) == set(REASONS)


def test_every_exit_code_that_the_code_can_give_is_documented() -> None:
    documented = set(re.findall(r"^\| (\d+) \|", (REFERENCE / "exit-codes.md").read_text(), re.MULTILINE))
    of_errors = {kind.exit_code for kind in MAKE_REFERENCE._error_classes()}
    assert {str(code) for code in of_errors | set(EXIT_CODES.values()) | {0, 1, 70, 130}} <= documented


def test_every_field_of_a_job_s_json_is_documented() -> None:
    page = (REFERENCE / "json.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w+)`", page))
    assert sorted(_names(job_json(_view(), [_EVENT])) - named) == []


def test_the_names_in_a_job_s_json_are_in_snake_case_but_for_those_that_other_programs_expect() -> None:
    """Requirements name these five; json.md lists them."""
    others = {"providerState", "instanceId", "sshHost", "activeStep", "progressLog"}
    assert {name for name in _names(job_json(_view(), [_EVENT])) if name != name.lower()} == others


_EVENT = Event(seq=1, job_id="job", job_version=1, kind="submitted", payload={}, at=1.0)


def _view() -> JobView:
    from tests.support.jobs.spine_values import job, rental

    return JobView(
        job=job(),
        now=1.0,
        shown="QUEUED",
        stage="queued",
        cost=job().spec.quote.cost_low,
        rentals=(rental(),),
        costs=(),
        checkpoints=(Checkpoint(attempt=1, path="output/a", kind="checkpoint", size=1),),
        alerts=(Alert(kind="silence", message="no answer"),),
        access=None,
    )


def _names(value: Any) -> set[str]:
    """Every key in a document, at any depth; parameters are the recipe's own."""
    if isinstance(value, list):
        return set().union(*(_names(one) for one in value))
    if not isinstance(value, dict):
        return set()
    return set(value).union(*(_names(inner) for key, inner in value.items() if key != "parameters"))
