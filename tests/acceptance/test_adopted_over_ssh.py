"""A training that somebody started by hand on their own machine, adopted over a real sshd and watched to its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.control.worker.background import running_worker
from tests.support.asynchronous_tests import names_in
from tests.support.commands.command_line import answer_of, stationmaster
from tests.support.jobs.hand_started import HandStarted, hand_started
from tests.support.machines.own_hosts import environ_with_hosts, host_behind
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.waiting import until

QUICK = {
    "STATIONMASTER_WORKER__LINGER": "0s",
    "STATIONMASTER_MONITORING__POLL_INTERVAL": "300ms",
    "STATIONMASTER_ARTIFACTS__EVERY": "500ms",
}


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def environ(sshd: Sshd, tmp_path: Path) -> Iterator[dict[str, str]]:
    host = host_behind(sshd, "box", tmp_path / "jobs")
    yield {**environ_with_hosts(tmp_path, host, trusted=(sshd,)), **QUICK}
    until(lambda: running_worker(tmp_path / "home") is None, seconds=60)


@pytest.fixture
def training(tmp_path: Path) -> Iterator[HandStarted]:
    with hand_started(tmp_path / "run") as started:
        yield started


def test_a_training_is_watched_to_its_end_and_its_machine_is_left_as_it_was(
    environ: dict[str, str], training: HandStarted, tmp_path: Path
) -> None:
    words = ("adopt", "box", *training.words, "--id", "mine", "--yes")
    adopted = stationmaster(*words, environ=environ)
    assert adopted.returncode == 0, adopted.stderr
    assert f"process {training.pid}" in adopted.stdout
    assert "exit code" in adopted.stdout

    def show() -> dict[str, object]:
        shown: dict[str, object] = answer_of("show", "mine", "--events", "--json", environ=environ)
        return shown

    def has_checkpoint() -> bool:
        kinds = [event["kind"] for event in show()["progressLog"]]  # type: ignore[attr-defined]
        return "checkpoint_safe" in kinds

    until(has_checkpoint, "a checkpoint at home while it runs")
    assert training.is_alive
    again = stationmaster("adopt", "box", *training.words, "--yes", environ=environ)
    assert again.returncode != 0
    assert "job mine watches this training already" in again.stderr
    training.go_on()
    until(lambda: show()["state"] == "ENDED", "its end", story=lambda: str(show()))
    shown = show()
    assert (shown["outcome"], shown["cost_usd"]) == ("COMPLETED", 0)
    assert shown["progress"]["step"] == 20  # type: ignore[index]
    assert Path(str(shown["model"])).name == "cats.safetensors"
    assert Path(str(shown["model"])).read_bytes() == training.files()["cats.safetensors"]
    assert sorted(training.files()) == ["cats-000005.safetensors", "cats.safetensors"]
    assert sorted(path.name for path in training.folder.iterdir()) == ["go", "logs", "out", "pid", "train.py"]
    assert names_in(tmp_path / "jobs") == [".lock"]
