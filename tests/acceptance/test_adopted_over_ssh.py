"""A training that somebody started by hand on their own machine, adopted over a real sshd and watched to its end."""

from __future__ import annotations

import getpass
import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stationmaster.config import load_settings
from stationmaster.control.wiring.open_store import open_store
from stationmaster.control.worker.background import running_worker
from stationmaster.model import State
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import names_in
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.commands.json_documents import assert_documented
from tests.support.jobs.hand_started import HandStarted, hand_started
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.waiting import until

QUICK = {
    "STATIONMASTER_WORKER__LINGER": "0s",
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "300ms",
    "STATIONMASTER_ARTIFACTS__EVERY": "500ms",
}

WATCHFUL = {
    "STATIONMASTER_MONITORING__STALL_DETECTION__THRESHOLDS": json.dumps(
        {"min_window": "2s", "near_end_eta": "1s", "near_end_progress": 1}
    ),
    "STATIONMASTER_MONITORING__GRACE_PERIOD": "1s",
}


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def environ(sshd: Sshd, tmp_path: Path) -> Iterator[dict[str, str]]:
    host = host_behind(sshd, "box", tmp_path / "jobs")
    yield {**environ_with_hosts(tmp_path, host, trusted=(sshd,)), **QUICK}
    home = tmp_path / "home"
    until(lambda: running_worker(home) is None, "the worker's leave", story=lambda: _of_the_worker(home))


def _of_the_worker(home: Path) -> str:
    """Who it is, and what it said last."""
    return f"{running_worker(home)}\n{(home / 'worker.log').read_text()[-4000:]}"


@pytest.fixture
def store(environ: dict[str, str], tmp_path: Path) -> Iterator[Store]:
    """To wait with: a look at the store costs less than a command."""
    with closing(open_store(load_settings(environ, folder=tmp_path))) as opened:
        yield opened


@pytest.fixture
def training(tmp_path: Path) -> Iterator[HandStarted]:
    with hand_started(tmp_path / "run") as started:
        yield started


class Mine:
    """The job `mine`, and what is known of it."""

    def __init__(self, environ: dict[str, str], store: Store, training: HandStarted, *words: str) -> None:
        self.environ = environ
        self.store = store
        adopt = ("adopt", "box", *training.words, "--id", "mine", "--yes", *words)
        adopted = stationmaster(*adopt, environ=environ)
        assert adopted.returncode == 0, adopted.stderr
        self.said = adopted.stdout
        # The same id again changes nothing.
        assert_documented("adopt", answer_of(*adopt, "--json", environ=environ))

    def show(self) -> dict[str, Any]:
        shown: dict[str, Any] = answer_of("show", "mine", "--events", "--json", environ=self.environ)
        return shown

    def until_told(self, kind: str) -> None:
        def is_told() -> bool:
            return any(event.kind == kind for event in self.store.events.of_job("mine"))

        until(is_told, f"the event {kind}", story=lambda: str(self.show()))

    def until_ended(self) -> dict[str, Any]:
        self.show()  # every command that looks starts a worker where work is left
        until(lambda: self.store.jobs.get("mine").state is State.ENDED, "its end", story=lambda: str(self.show()))
        return self.show()


def test_a_training_is_watched_to_its_end_and_its_machine_is_left_as_it_was(
    environ: dict[str, str], store: Store, tmp_path: Path
) -> None:
    """It has stalled when it is adopted, which is told and nothing more; the worker is killed meanwhile."""
    environ = {**environ, **WATCHFUL}
    with hand_started(tmp_path / "run", steps=60, waits_at=40, pace_seconds=0.05) as training:
        until(lambda: "cats-000040.safetensors" in training.files(), "the step at which it waits")
        mine = Mine(environ, store, training)
        assert f"process {training.pid}" in mine.said
        assert "exit code" in mine.said
        again = stationmaster("adopt", "box", *training.words, "--yes", environ=environ)
        assert again.returncode != 0
        assert "job mine watches this training already" in again.stderr
        mine.until_told("checkpoint_safe")
        mine.until_told("stall_flagged")
        assert training.is_alive
        assert "not known" in stationmaster("show", "mine", environ=environ).stdout
        worker = running_worker(tmp_path / "home")
        assert worker is not None
        os.kill(worker.pid, signal.SIGKILL)
        until(lambda: running_worker(tmp_path / "home") is None, "the worker's death")
        training.go_on()
        shown = mine.until_ended()
        assert (shown["outcome"], shown["cost_usd"], shown["progress"]["step"]) == ("COMPLETED", 0, 60)
        assert Path(shown["model"]).name == "cats.safetensors"
        assert Path(shown["model"]).read_bytes() == training.files()["cats.safetensors"]
        assert sorted(training.files()) == ["cats-000040.safetensors", "cats.safetensors"]
        assert sorted(path.name for path in training.folder.iterdir()) == ["go", "logs", "out", "pid", "train.py"]
        assert names_in(tmp_path / "jobs") == [".lock"]


def test_a_stop_ends_it_and_keeps_what_it_saved(environ: dict[str, str], store: Store, training: HandStarted) -> None:
    mine = Mine(environ, store, training)
    mine.until_told("attached")
    assert stationmaster("stop", "mine", environ=environ).returncode == 0
    shown = mine.until_ended()
    assert (shown["outcome"], shown["reason"]) == ("INCOMPLETE", "STOPPED_BY_USER")
    assert Path(shown["model"]).name == "cats-000005.safetensors"
    assert not training.is_alive


def test_a_cancel_only_stops_watching(
    environ: dict[str, str], store: Store, training: HandStarted, tmp_path: Path
) -> None:
    mine = Mine(environ, store, training)
    mine.until_told("attached")
    cancelled = stationmaster("cancel", "mine", "--keep", environ=environ)
    assert cancelled.returncode == 0, cancelled.stderr
    assert "the training and its machine go on" in cancelled.stdout
    shown = mine.until_ended()
    assert (shown["outcome"], Path(shown["model"]).name) == ("CANCELLED", "cats-000005.safetensors")
    assert training.is_alive
    assert names_in(tmp_path / "jobs") == [".lock"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (("--log", "/nowhere/*.log"), "no log on box matches /nowhere/*.log"),
        (("--pid-file", "/nowhere/pid"), "the pid file /nowhere/pid cannot be read"),
        (("--release",), "--release: nothing is rented on box"),
        (("--stop-signal", "KILL"), "is not a signal"),
        (("--max-hours", "0"), "--max-hours must be above zero"),
    ],
)
def test_what_cannot_be_adopted_is_refused_before_there_is_a_job(
    environ: dict[str, str], training: HandStarted, changed: tuple[str, ...], said: str
) -> None:
    refused = stationmaster("adopt", "box", *training.words, *changed, "--yes", environ=environ)
    assert refused.returncode != 0
    assert said in refused.stderr
    assert "hint:" in refused.stderr or "above zero" in said
    assert answer_of("jobs", "--all", "--json", environ=environ) == []


def test_a_host_that_is_no_host_or_does_not_answer_is_said(environ: dict[str, str], training: HandStarted) -> None:
    for host, said in (("a b", "neither an instance nor a host"), ("ann@127.0.0.1:1", "cannot be looked at")):
        refused = stationmaster("adopt", host, *training.words, "--yes", environ=environ)
        assert refused.returncode != 0
        assert said in refused.stderr


def test_a_dry_run_looks_and_makes_no_job(environ: dict[str, str], training: HandStarted) -> None:
    seen = answer_of("adopt", "box", *training.words, "--dry-run", "--json", environ=environ)
    assert (seen["adopted"]["pid"], seen["recipe"]) == (training.pid, "adopted@1")
    assert_documented("adopt --dry-run", seen)
    assert stationmaster("adopt", "box", *training.words, environ=environ).returncode != 0, "nobody was asked"
    assert answer_of("jobs", "--all", "--json", environ=environ) == []


def test_a_host_is_named_as_for_ssh_itself(sshd: Sshd, training: HandStarted, tmp_path: Path) -> None:
    """By an alias of the SSH configuration, or by user, address and port; its host key must be known."""
    environ = environ_with_hosts(tmp_path, trusted=(sshd,))
    config = Path(environ["STATIONMASTER_SSH__CONFIG_PATH"])
    alias = f"Host gpu\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
    config.write_text(f"{alias}Host *\n  IdentityFile {sshd.client_key}\n" + config.read_text())
    for host in ("gpu", f"{getpass.getuser()}@127.0.0.1:{sshd.port}"):
        seen = answer_of("adopt", host, *training.words, "--dry-run", "--json", environ=environ)
        assert seen["adopted"]["pid"] == training.pid
    (tmp_path / "person_known_hosts").write_text("")
    refused = stationmaster("adopt", "gpu", *training.words, "--dry-run", environ=environ)
    assert refused.returncode != 0
    assert "host key that you have not confirmed" in refused.stderr
    assert "stationmaster keys trust gpu" in refused.stderr
