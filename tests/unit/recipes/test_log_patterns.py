"""Patterns for output that nobody knows: in a recipe, in the settings, and in one place of both."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from stationmaster.control.flow.policy import policy_of
from stationmaster.control.monitoring.instance_metrics import InstanceMetrics
from stationmaster.control.monitoring.machine_log import MachineLog
from stationmaster.control.monitoring.sources import LogPiece, LogPosition
from stationmaster.errors import ConfigInvalid
from stationmaster.parsers import Phase, UserPattern
from stationmaster.recipes.log_patterns import user_patterns
from stationmaster.recipes.reading import check_recipe
from tests.support.jobs.recipe_texts import small

TICK = r"tick (?P<step>\d+) of (?P<total_steps>\d+) cost (?P<loss>\S+)"


def with_patterns(*lines: str) -> str:
    block = "".join(f"  - {line}\n" for line in lines)
    return small(("steps:\n  - name", f"log_patterns:\n{block}steps:\n  - name"))


def test_a_recipe_s_patterns_become_those_of_the_reader() -> None:
    text = with_patterns(
        f"pattern: '{TICK}'", "{pattern: '^zzz', phase: sampling}", "{pattern: 'P (?P<error>.+)', fatal: false}"
    )
    recipe, problems = check_recipe(text, file="recipe.yaml")
    assert problems == []
    assert recipe is not None
    assert user_patterns(recipe.log_patterns) == (
        UserPattern(pattern=TICK),
        UserPattern(pattern="^zzz", phase=Phase.SAMPLING),
        UserPattern(pattern="P (?P<error>.+)", fatal=False),
    )


@pytest.mark.parametrize(
    ("line", "field", "says", "fix"),
    [
        ("pattern: 'tick ('", "pattern", "is not a regular expression", "backslash"),
        (r"pattern: '(?P<speed>\d+)'", "pattern", "has an unknown group: speed", "steps_per_second"),
        ("pattern: nothing", "pattern", "has no named group", "name a group"),
        (r"pattern: '(?P<step>(\d+)+)x'", "pattern", "too slow", "limit them"),
        ("{pattern: x, phase: sleeping}", "phase", "'loading', 'caching'", "write"),
        ("{patern: x}", "patern", "extra inputs", "did you mean `pattern`?"),
    ],
)
def test_lint_names_line_field_and_fix(line: str, field: str, says: str, fix: str) -> None:
    _, problems = check_recipe(with_patterns(f"pattern: '{TICK}'", line), file="recipe.yaml")
    problem = next(one for one in problems if one.field == f"log_patterns[1].{field}")
    assert problem.line == 13
    assert says in problem.message
    assert problem.fix is not None
    assert fix in problem.fix
    assert len(problems) == (2 if "patern" in field else 1)


def test_the_settings_have_patterns_too(tmp_path: Path) -> None:
    given = [{"pattern": TICK}, {"pattern": "^zzz", "phase": "saving"}]
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_LOGS__PATTERNS": json.dumps(given)}
    settings = load_settings(environ, folder=tmp_path)
    assert user_patterns(policy_of(settings).logs.patterns)[1].phase is Phase.SAVING
    (tmp_path / "config.toml").write_text(f"[[logs.patterns]]\npattern = '{TICK}'\n")
    from_file = load_settings({"STATIONMASTER_HOME": str(tmp_path)}, folder=tmp_path)
    assert from_file.logs.patterns == settings.logs.patterns[:1]


@pytest.mark.parametrize("pattern", ["(", r"(?P<speed>\d+)", "nothing", r"(?P<step>(\d+)+)x"])
def test_a_setting_that_cannot_work_is_refused(pattern: str, tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_LOGS__PATTERNS": json.dumps([{"pattern": pattern}])}
    with pytest.raises(ConfigInvalid, match="the log pattern"):
        load_settings(environ, folder=tmp_path)


def test_machines_that_are_only_looked_at_are_read_by_them_as_well() -> None:
    text = b"tick 40 of 200 cost 0.25\n"
    piece = LogPiece(data=text, position=LogPosition(file="1", offset=len(text)), continues=False)
    seen = MachineLog([UserPattern(pattern=TICK)]).add(piece, InstanceMetrics(id="1"))
    assert (seen.step, seen.total_steps, seen.loss) == (40, 200, 0.25)
