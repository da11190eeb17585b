"""What commands answer about money, machines, dry runs and services, in words that hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stationmaster.money import from_dollars
from tests.support.commands.cli_runs import Home
from tests.support.jobs.recipe_jobs import scripted
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import put_trained

CONFIG = """
configs:
  - {path: trainer.yaml, format: yaml, data: {steps: "{{ parameters.steps }}", name: "{{ job.name }}"}}
"""


def test_a_dry_run_prints_commands_and_config_files(home: Home, pictures: Path) -> None:
    recipes = home.folder / "recipes" / "scripted"
    recipes.mkdir(parents=True)
    (recipes / "recipe.yaml").write_text(scripted("exit 1", more=CONFIG), encoding="utf-8")
    words = ("train", "--recipe", "scripted@1", "--dataset", str(pictures), "--name", "cats", "--dry-run")
    ran = home.run(*words, STATIONMASTER_RECIPES=str(recipes.parent))
    assert ran.code == 0, ran.err
    path, text = "/opt/stationmaster/jobs/JOB/config/trainer.yaml", "steps: 3\nname: cats\n"
    assert "\n# train\n/bin/sh -euc 'exit 1\n' sh\n" in ran.out
    assert ran.out.endswith(f"\n# {path}\n{text}")
    told = home.run(*words, "--json", STATIONMASTER_RECIPES=str(recipes.parent)).json()
    assert told["configs"] == [{"path": path, "text": text}]


def test_costs_of_a_removed_job_are_found_by_its_id(home: Home) -> None:
    assert home.run("jobs").code == 0
    put_trained(home.store, "mine")
    before = home.run("costs", "--job", "mine", "--json").json()
    assert home.run("jobs", "rm", "mine", "--yes").code == 0
    after = home.run("costs", "--job", "mine", "--json")
    assert (after.code, after.err) == (0, "note: job mine was removed; its costs stay\n")
    assert [line["amount_micros"] for line in after.json()] == [line["amount_micros"] for line in before]
    assert home.run("costs", "--job", after.json()[0]["job"]).code == 0
    assert home.run("costs", "--job", "other").code == 6


def test_a_stop_in_the_queue_says_that_nothing_was_rented(home: Home) -> None:
    assert home.run("jobs").code == 0
    home.store.jobs.submit(spec("mine", provider="nowhere"))
    ran = home.run("stop", "mine", "--yes", "--json")
    assert ran.json() == {"id": "mine", "note": "the job ends before it began; nothing was rented"}


def test_machines_are_listed_with_their_price_and_cost(home: Home) -> None:
    machine = home.path / "machines" / "somebody-else"
    machine.mkdir(parents=True)
    (machine / "machine.json").write_text(json.dumps({"created_at": 1.0, "price_per_hour": from_dollars("0.31")}))
    ran = home.run("instances")
    header, row, total = ran.out.splitlines()
    assert header.split() == ["INSTANCE", "PROVIDER", "STATUS", "$/H", "COST", "SWEEP", "WHY"]
    assert row.split()[:4] == ["somebody-else", "loopback", "RUNNING", "$0.310"]
    assert "leave" in row
    assert total.startswith("1 machine(s): $0.310 per hour, $")
    told = home.run("instances", "--json").json()
    assert (told["price_per_hour_usd"], told["cost_usd"]) == (0.31, told["machines"][0]["cost_usd"])
    assert told["cost_usd"] > 1000, "more than half a century"


@pytest.mark.parametrize("verb", ["worker", "sweeper"])
def test_a_service_says_what_its_default_provider_lacks(home: Home, verb: str) -> None:
    words = ("worker", "--background") if verb == "worker" else ("sweeper", "--once")
    ran = home.run(*words, DRIVER="vastai")
    (told,) = _events(ran.err, "settings.incomplete")
    assert (ran.code, told["level"], told["provider"]) == (0, "warning", "vastai")
    assert told["problem"] == "Vast.ai needs a key and none is set"
    assert "VASTAI_API_KEY" in told["hint"]
    assert not _events(home.run(*words, DRIVER="vastai", VASTAI_API_KEY="planted").err, "settings.incomplete")


def test_a_service_unit_has_the_home_in_quotes_and_no_secret(home: Home) -> None:
    path = home.folder / "my home"
    ran = home.run("--home", str(path), "doctor", "--service", VASTAI_API_KEY="planted")
    assert (ran.code, "planted" in ran.out + ran.err) == (0, False)
    assert f'--home "{path}" worker\n' in ran.out
    assert f"EnvironmentFile={path}/worker.env\n" in ran.out
    assert "VASTAI_API_KEY" in ran.err
    assert 'VASTAI_API_KEY="planted"\n' in (path / "worker.env").read_text()


def _events(log: str, name: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("event") == name]
