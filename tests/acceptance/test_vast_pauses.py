"""Commands at a Vast.ai with the real one's pauses between calls: they wait, visibly where it takes long, and work."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.local_world import write_pictures
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings

_WAITING = "waiting {} s for the rate limit of Vast.ai\n"


@pytest.fixture
def vast_url(tmp_path: Path) -> Iterator[str]:
    settings = quick_settings(tmp_path / "simulator", backend="paper", rate_limit_scale=1.0)
    with simulator_thread(settings) as url:
        yield url


@pytest.fixture
def customer(vast_url: str) -> Iterator[Customer]:
    customer = Customer(vast_url)
    yield customer
    customer.close()


@pytest.fixture
def person(vast_url: str, tmp_path: Path) -> dict[str, str]:
    return person_at(vast_url, tmp_path / "person")


def person_at(vast_url: str, folder: Path) -> dict[str, str]:
    """Somebody with an account and nothing else: no key pair, and every setting as it comes."""
    folder.mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "VASTAI_API_KEY": API_KEY,
        "VASTAI_API_BASE_URL": f"{vast_url}/api/v0",
    }


def test_keys_are_set_up_and_checked_in_a_row(person: dict[str, str]) -> None:
    for _ in range(2):
        done = stationmaster("keys", "setup", environ=person)
        assert (done.returncode, "vastai has the key" in done.stdout) == (0, True), done.stderr
    assert answer_of("keys", "check", "--json", environ=person)["providers"]["vastai"]["knows_ours"] is True


@pytest.mark.parametrize("words", [("keys", "setup"), ("instances",), ("monitor", "--once")], ids=" ".join)
def test_two_homes_that_share_an_account_and_know_nothing_of_each_other_both_get_their_answers(
    words: tuple[str, ...], vast_url: str, tmp_path: Path
) -> None:
    people = [person_at(vast_url, tmp_path / name) for name in ("one", "other")]

    def run(environ: dict[str, str]) -> list[subprocess.CompletedProcess[str]]:
        return [stationmaster(*words, "--json", environ=environ) for _ in range(2)]

    with ThreadPoolExecutor(2) as threads:
        for done in [each for both in threads.map(run, people) for each in both]:
            assert done.returncode == 0, done.stderr
            assert not json.loads(done.stdout).get("problems"), done.stdout


def test_a_wait_that_the_service_asks_for_is_told_and_what_programs_read_stays_pure(
    customer: Customer, person: dict[str, str]
) -> None:
    customer.arm("rate_limited", operation="list", shape="retry_after", seconds=3.0)
    done = stationmaster("instances", "--json", environ=person)
    assert done.returncode == 0, done.stderr
    nothing = {"machines": [], "gone": [], "problems": [], "price_per_hour_usd": 0.0, "cost_usd": 0.0}
    assert json.loads(done.stdout) == nothing
    assert done.stderr == _WAITING.format(3)


def test_a_used_up_day_is_told_at_once(customer: Customer, person: dict[str, str]) -> None:
    customer.arm("rate_limited", operation="search", shape="search_quota", times=9)
    done = stationmaster("offers", "--provider", "vastai", environ=person)
    assert done.returncode == 20
    said, hint = done.stderr.splitlines()
    assert said == "error: Vast.ai did not search its offers: Daily search quota exceeded."
    assert hint.startswith("hint: the account's daily search quota is used up; it resets at 00:00 UTC")
    assert len(customer.struck("rate_limited")) == 1


def test_looking_needs_no_key_pair_and_training_says_early_that_it_does(
    customer: Customer, person: dict[str, str], tmp_path: Path
) -> None:
    pictures = str(write_pictures(tmp_path / "pictures"))
    customer.rent(label="somebody-else")
    assert answer_of("offers", "--provider", "vastai", "--json", environ=person)["offers"]
    assert answer_of("estimate", "tiny-lora@1", "--provider", "vastai", "--json", environ=person)
    (machine,) = answer_of("instances", "--json", environ=person)["machines"]
    assert machine["provider"] == "vastai", "a machine that bills is seen without a key"
    request = ("train", "--provider", "vastai", "--recipe", "tiny-lora@1", "--dataset", pictures)
    assert answer_of(*request, "--dry-run", "--json", environ=person)["quote"]
    refused = stationmaster(*request, "--yes", environ=person)
    assert (refused.returncode, refused.stdout) == (3, "")
    said, hint = refused.stderr.splitlines()
    assert said.startswith("error: there is no SSH key at")
    assert "stationmaster keys setup" in hint
    assert answer_of("jobs", "--all", "--json", environ=person) == []
