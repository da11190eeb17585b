"""Every command's JSON is what docs/reference/json.md says: each is run, and each of its fields must be described."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperGroup

from scripts.json_page import LINES, PRINTED, WITHOUT_JSON, documents
from stationmaster.cli.commands import loaded_tree
from stationmaster.model import Outcome, Reason
from tests.support.commands.cli_runs import QUICK, Home
from tests.support.commands.command_line import PATIENCE_SECONDS
from tests.support.commands.json_documents import assert_documented, undocumented
from tests.support.commands.served_home import Client, ServedHome
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.stored_jobs import change_row
from tests.support.programs import ROOT
from tests.support.servers.live_bench import WrittenJob

TRAINING = "--recipe tiny-lora@1 --dataset PICTURES --steps 20 -p seconds_per_step=0 -p save_every=10"

TRIES: dict[str, str] = {
    "metrics --export": "metrics done --export FOLDER/run.db",
    "analyze": "analyze done",
    "analyze FILE": "analyze FOLDER/run.db",
    "audit": "audit",
    "compare": "compare done broken",
    "costs": "costs",
    "costs --budget": "costs --budget",
    "costs --over-time": "costs --over-time day",
    "credits grant": "credits grant me 5 --reason more --expires 30d",
    "credits adjust": "credits adjust me -1 --reason mistake",
    "credits refund": "credits refund done --reason sorry",
    "credits show": "credits show",
    "credits statement": "credits statement me",
    "credits export": "credits export",
    "credits verify": "credits verify",
    "dataset check": "dataset check FOLDER/faulty",
    "dataset pack": "dataset pack PICTURES FOLDER/set.tar",
    "doctor": "doctor",
    "estimate": "estimate tiny-lora@1 --images 12",
    "init": "--home FOLDER/new-home init --yes --set provider=ssh",
    "instances": "instances",
    "jobs": "jobs --all",
    "logs": "logs done",
    "logs --grep": "logs done --grep loss",
    "logs --errors": "logs broken --errors",
    "metrics": "metrics done",
    "metrics --import": "metrics done --import FOLDER/run.csv",
    "metrics --table": "metrics done --table StepMetric",
    "models download": "models download cats FOLDER",
    "models list": "models list",
    "models show": "models show cats",
    "monitor": "monitor --mock --seed 1",
    "monitor --once": "monitor --mock --seed 1 --once",
    "notify inbox": "notify inbox --all",
    "notify test": "notify test",
    "offers": "offers --recipe flux-lora@2 --provider loopback",
    "parse": "parse FOLDER/log.txt",
    "pull": "pull done FOLDER/pulled",
    "recipes lint": "recipes lint FOLDER/wrong/recipe.yaml",
    "recipes list": "recipes list --all",
    "recipes new": "recipes new FOLDER/mine",
    "recipes show": "recipes show tiny-lora@1",
    "replay": "replay FOLDER/log.txt",
    "retry": "retry done --yes --id again",
    "retry --dry-run": "retry done --dry-run",
    "stop": "stop again",
    "show": "show done --events",
    "store backup": "store backup FOLDER/copy.db",
    "store check": "store check",
    "store show": "store show",
    "sweep": "sweep",
    "train": f"train {TRAINING} --name dogs --id second --yes",
    "cancel": "cancel second --yes",
    "train --dry-run": f"train {TRAINING} --dry-run",
    "trust": "trust",
    "trust --remove": "trust --remove",
    "users add": "users add ann --email ann@example.com",
    "users set": "users set ann --telegram-id 123456 --role viewer",
    "users show": "users show ann",
    "users list": "users list",
    "tokens create": "tokens create laptop --user ann --right read",
    "tokens link": "tokens link --user ann",
    "tokens list": "tokens list",
    "tokens revoke": "tokens revoke TOKEN",
    "users rm": "users rm ann",
    "watch": "watch",
    "watch --once": "watch --once",
    "watch JOB": "watch done",
    "jobs prune": "jobs prune --older-than 0s",
    "jobs rm": "jobs rm broken --yes",
}
"""One run of each command, in this order."""

ELSEWHERE: dict[str, str] = {
    "adopt": "tests/acceptance/test_adopted_over_ssh.py",
    "adopt --dry-run": "tests/acceptance/test_adopted_over_ssh.py",
    "demo": "tests/acceptance/test_rental.py",
    "keys check": "tests/acceptance/test_keys_command.py",
    "keys setup": "tests/acceptance/test_keys_command.py",
    "keys trust": "tests/acceptance/test_keys_command.py",
    "models publish": "tests/acceptance/cli/test_models_command.py",
    "sample": "tests/acceptance/cli/test_running_job.py",
    "sample --wait": "tests/acceptance/cli/test_running_job.py",
    "save": "tests/acceptance/cli/test_running_job.py",
    "save --wait": "tests/acceptance/cli/test_running_job.py",
}
"""Tests of commands that need more than a home; they call `assert_documented` with the same title."""

PAID = {"STATIONMASTER_BILLING__ENABLED": "true", "STATIONMASTER_LOOPBACK__PRICE_PER_HOUR": "1"}
UNTIL_STOPPED = ("monitor", "watch")
FAILING = {"dataset check": 5, "recipes lint": 4}
"""Exit codes of runs that find something wrong; `doctor` may find anything on this computer."""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, pictures: Path) -> Iterator[ServedHome]:
    """A served home with billing, a job that completed, one that failed, a model and messages."""
    served = ServedHome(tmp_path_factory.mktemp("contract"), **PAID)
    _write_failed_job(served)
    with served as opened:
        client_folder = tmp_path_factory.mktemp("client")
        Client(client_folder, opened.url, opened.token()).run("credits", "grant", "me", "50", "--reason", "welcome")
        _write_files(opened, pictures)
        train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--name", "cats", "--id", "done")
        ran = opened.run(*train, *QUICK, "--yes", "--watch")
        assert ran.code == 0, ran.err
        exported = opened.run("metrics", "done", "--export", "run.csv", "--table", "StepMetric")
        assert exported.code == 0, exported.err
        yield opened


def _write_failed_job(home: Home) -> None:
    home.path.mkdir()
    job = WrittenJob(home.store, "broken")
    job.write_log(b"step 1/20 loss: 0.5\n", b"RuntimeError: no pictures\n")
    job.end()
    failed = {"outcome": Outcome.FAILED.value, "reason": Reason.STEP_FAILED.value}
    change_row(home.store, "broken", **failed, attempt=1, ended_at=home.store.now())


def _write_files(home: Home, pictures: Path) -> None:
    steps = [f"{1_700_000_000 + 10 * step} step {step}/1000 loss: 0.5" for step in range(60)]
    (home.folder / "log.txt").write_text("\n".join([*steps, "1700090000 still here", ""]))
    faulty = write_pictures(home.folder / "faulty")
    (faulty / "broken.png").write_bytes(b"not an image")
    assert home.run("recipes", "new", str(home.folder / "wrong")).code == 0
    recipe = home.folder / "wrong" / "recipe.yaml"
    recipe.write_text(recipe.read_text() + "colour: blue\n")
    (home.folder / "stationmaster.toml").write_text('log_level = "INFO"\n')


@pytest.mark.parametrize("title", TRIES)
def test_a_command_prints_only_what_is_described(home: ServedHome, pictures: Path, title: str) -> None:
    words = TRIES[title].replace("PICTURES", str(pictures)).replace("FOLDER", str(home.folder))
    if "TOKEN" in words:
        words = words.replace("TOKEN", home.run("tokens", "list", "--user", "ann", "--json").json()[0]["id"])
    answers = list(_answers(home, title, words.split()))
    assert any(answers), "nothing was printed that could be compared"
    for answer in answers:
        assert_documented(title, answer)


def _answers(home: Home, title: str, words: list[str]) -> Iterator[Any]:
    printed = next(each for each in PRINTED if each.title == title)
    if title in UNTIL_STOPPED:
        running = home.start(*words, "--json")
        assert running.stdout is not None
        yield json.loads(running.stdout.readline())
        running.terminate()
        running.communicate(timeout=PATIENCE_SECONDS)
        return
    ran = home.run(*words, "--json")
    assert title == "doctor" or ran.code == FAILING.get(title, 0), ran.err
    yield from map(json.loads, ran.out.splitlines() if printed.form == LINES else [ran.out])


def test_every_command_that_prints_json_is_described_and_tried() -> None:
    with_json = {path for path, command in _commands(loaded_tree()) if _has_json(command)}
    assert with_json == {each.command for each in PRINTED}, "add a line to PRINTED in scripts/json_page.py"
    assert {each.title for each in PRINTED} == {*TRIES, *ELSEWHERE}, "try it above"


def test_every_other_command_says_why_it_prints_none() -> None:
    without = {path for path, command in _commands(loaded_tree()) if not _has_json(command)}
    assert without == set(WITHOUT_JSON), "give it --json, or a reason in WITHOUT_JSON of scripts/json_page.py"


@pytest.mark.parametrize("title", ELSEWHERE)
def test_a_command_that_needs_more_is_compared_by_the_test_that_has_it(title: str) -> None:
    assert f'assert_documented("{title}"' in (ROOT / ELSEWHERE[title]).read_text(encoding="utf-8")


def test_every_field_says_what_it_means() -> None:
    silent = [
        f"{name}.{field}"
        for name, schema in documents().items()
        for field, described in schema.get("properties", {}).items()
        if not described.get("description")
    ]
    assert silent == [], "write a sentence below the field"


def test_a_field_that_is_not_described_is_found() -> None:
    jobs = next(each for each in PRINTED if each.title == "stop")
    assert list(undocumented(jobs, {"id": "a", "note": "b"})) == []
    assert list(undocumented(jobs, {"id": "a", "note": "b", "more": 1})) == [".more"]
    assert list(undocumented(jobs, {"id": 1, "note": "b"})) == [".id: 1 is not string"]


def _commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        place = f"{path} {name}".strip()
        if not isinstance(command, TyperGroup):
            yield place, command
            continue
        if command.invoke_without_command:
            yield place, command
        yield from _commands(command, place)


def _has_json(command: Any) -> bool:
    return any("--json" in parameter.opts for parameter in command.params)
