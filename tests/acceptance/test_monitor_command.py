"""`stationmaster monitor`, as a person runs it: made-up machines, and real ones of a simulated Vast.ai."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings
from tests.support.waiting import until

_LOG_LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} - stationmaster\.monitor - WARNING - .+")
_ONSTART = """
folder="${STATIONMASTER_WORKSPACE:-/workspace}/output/run"; mkdir -p "$folder"
for step in $(seq 1 30); do echo "Step $step: Loss = 2.$step"; done > "$folder/training.log"
echo "Epoch 2/3" >> "$folder/training.log"
echo "other words" > "$folder/other.log"
"""


@pytest.fixture
def vast_url(tmp_path: Path) -> Iterator[str]:
    with simulator_thread(quick_settings(tmp_path / "simulator")) as url:
        yield url


@pytest.fixture
def customer(vast_url: str) -> Iterator[Customer]:
    found = Customer(vast_url)
    yield found
    found.close()


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}


@pytest.fixture
def environ(person: dict[str, str], vast_url: str) -> dict[str, str]:
    return {**person, "VASTAI_API_KEY": API_KEY, "VASTAI_API_BASE_URL": vast_url}


def test_any_machines_of_the_account_are_watched_with_their_logs(customer: Customer, environ: dict[str, str]) -> None:
    answer_of("keys", "setup", "--json", environ=environ)
    first, second = (str(customer.rent(label="somebody's", onstart=_ONSTART)) for _ in range(2))
    for each in (first, second):
        customer.wait_for(int(each), "running")

    def both_logs() -> dict[str, dict[str, Any]] | None:
        shown = answer_of("monitor", "--once", "--json", environ=environ)
        by_id = {each["id"]: each for each in shown["instances"]}
        return by_id if all(by_id[each]["logs"] for each in (first, second)) else None

    machine = until(both_logs, seconds=60)[first]
    assert (machine["step"], machine["loss"], machine["epoch"], machine["total_epochs"]) == (30, 2.3, 2, 3)
    assert isinstance(machine["logs"], list)
    assert (len(machine["logs"]), machine["logs"][-1]) == (10, "Epoch 2/3")
    assert (machine["status"], machine["label"], machine["stale"]) == ("running", "somebody's", False)
    assert machine["cost_per_hour_usd"] > 0

    words = ("monitor", "--instances", second, "--log-path", "../workspace/output/*/other.log", "--once", "--json")
    chosen = answer_of(*words, environ=environ)
    assert [(each["id"], each["logs"]) for each in chosen["instances"]] == [(second, ["other words"])]
    assert chosen["summary"]["running"] == 1


def test_without_a_key_on_the_machine_everything_but_the_log_is_shown(
    customer: Customer, environ: dict[str, str]
) -> None:
    machine = customer.rent_running()
    done = stationmaster("monitor", "--all", "--once", "--json", environ=environ)
    assert done.returncode == 0, done.stderr
    shown = json.loads(done.stdout)["instances"]
    assert [(each["id"], each["status"], each["logs"]) for each in shown] == [(str(machine["id"]), "running", [])]
    assert shown[0]["gpu_type"].endswith(machine["gpu_name"])
    (warning,) = done.stderr.splitlines()
    assert _LOG_LINE.fullmatch(warning)
    assert "there is no SSH key" in warning


def test_a_machine_that_is_not_there_is_a_warning_in_the_usual_format(environ: dict[str, str]) -> None:
    done = stationmaster("monitor", "--instances", "30007012", "--once", "--json", environ=environ)
    shown = json.loads(done.stdout)["instances"]
    assert [(each["id"], each["status"], each["stale"]) for each in shown] == [("30007012", "unknown", True)]
    (warning,) = done.stderr.splitlines()
    assert _LOG_LINE.fullmatch(warning)


def test_made_up_machines_need_no_account(person: dict[str, str], tmp_path: Path) -> None:
    shown = answer_of("monitor", "--mock", "--once", "--json", environ=person)
    assert shown["made_up"] is True
    assert {each["health"] for each in shown["instances"]} == {"healthy", "warning", "error", "neutral"}
    three = answer_of("monitor", "--mock", "--instances", "1,2,3", "--once", "--json", environ=person)
    assert len(three["instances"]) == three["summary"]["running"] == 3
    ids = ["30007012", "30007267", "30007268", "30007269", "30007270"]
    chosen = answer_of("monitor", "--mock", "--instances", ",".join(ids), "--once", "--json", environ=person)
    assert [each["id"] for each in chosen["instances"]] == ids
    table = stationmaster("monitor", "--mock", "--instances", "1,2,3", "--once", environ=person)
    assert (table.returncode, table.stderr) == (0, "")
    assert table.stdout.splitlines()[0] == "MOCK DATA: these machines are made up."
    assert "running 3/3" in table.stdout
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("words", [("--mock",), ("--from", "machines.json")])
def test_without_an_account_neither_the_store_nor_ssh_nor_http_is_loaded(
    person: dict[str, str], words: tuple[str, ...], tmp_path: Path
) -> None:
    """They would take half of the memory that the app may use."""
    (tmp_path / "machines.json").write_text('[{"id": 17, "actual_status": "running"}]')
    command = [sys.executable, "-X", "importtime", "-m", "stationmaster", "monitor", *words, "--once"]
    done = subprocess.run(command, env=person, cwd=tmp_path, capture_output=True, text=True, timeout=150, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert "pydantic" in loaded
    assert loaded & {"sqlalchemy", "asyncssh", "httpx", "cryptography"} == set()


def test_it_repeats_one_json_object_per_line_until_interrupted(person: dict[str, str]) -> None:
    command = [sys.executable, "-m", "stationmaster", "monitor", "--mock", "--instances", "1,2"]
    command += ["--interval", "1", "--json"]
    with subprocess.Popen(command, env=person, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=150)
    assert looks[0]["at"] < looks[1]["at"]
    assert (process.returncode, errors) == (130, "")
    assert all(json.loads(line) for line in rest.splitlines())


def test_sentences_have_no_signs_that_cannot_be_read_out(person: dict[str, str]) -> None:
    done = stationmaster("monitor", "--mock", "--plain", "--once", environ=person)
    mark, *machines, summary = done.stdout.splitlines()
    assert (mark, summary.startswith("Summary: running ")) == ("MOCK DATA: these machines are made up.", True)
    assert done.stdout.isascii()
    assert len(machines) == 15
    assert any("exited, error because it is exited" in line for line in machines)


def test_machines_of_a_file_and_of_a_pipe_need_no_account_and_no_store(person: dict[str, str], tmp_path: Path) -> None:
    row = {"id": 17, "actual_status": "running", "label": "cats-1", "gpu_name": "A100", "num_gpus": 1, "dph_total": 1.5}
    document = json.dumps([row, {**row, "id": 18, "label": "dogs"}, {"id": "x"}])
    file = tmp_path / "machines.json"
    file.write_text(document)
    environ = {**person, "STATIONMASTER_MONITOR__GROUPS": '{"cats": ["cats-*"]}'}
    done = stationmaster("monitor", "--from", str(file), "--group", "cats", "--once", "--json", environ=environ)
    assert done.returncode == 0, done.stderr
    assert [(each["id"], each["groups"]) for each in json.loads(done.stdout)["instances"]] == [("17", ["cats"])]
    (warning,) = done.stderr.splitlines()
    assert _LOG_LINE.fullmatch(warning)
    assert "instance x skipped" in warning
    piped = subprocess.run(
        [sys.executable, "-m", "stationmaster", "monitor", "--from", "-", "--interval", "1", "--json"],
        env=environ,
        input=f"{document}\n{document.replace('dogs', 'cows')}\n",
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    last = json.loads(piped.stdout.splitlines()[-1])
    assert [each["label"] for each in last["instances"]] == ["cats-1", "cows"]
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 3, "set VASTAI_API_KEY"),
        (("--instances", "one"), 2, "not the id of a machine"),
        (("--group", "cats"), 2, "there is no group 'cats'"),
        (("--mock", "--group", "cats"), 2, "groups of the settings: trainings, trouble"),
        (("--mock", "--notify"), 2, "made-up machines"),
        (("--from", "/nowhere/machines.json"), 2, "No such file"),
    ],
)
def test_what_is_missing_is_said_in_one_line_with_the_next_step(
    person: dict[str, str], words: tuple[str, ...], code: int, said: str
) -> None:
    done = stationmaster("monitor", "--once", *words, environ=person)
    assert (done.returncode, said in done.stderr, "hint:" in done.stderr) == (code, True, True)


def test_a_refused_key_is_an_error_and_a_silent_service_an_old_empty_state(environ: dict[str, str]) -> None:
    refused = stationmaster("monitor", "--once", environ={**environ, "VASTAI_API_KEY": "wrong"})
    assert (refused.returncode, "VASTAI_API_KEY" in refused.stderr) == (21, True)
    silent = {**environ, "VASTAI_API_BASE_URL": "http://127.0.0.1:9"}
    nobody = stationmaster("monitor", "--once", "--json", environ=silent)
    assert nobody.returncode == 1
    assert json.loads(nobody.stdout)["stale"] is True
