"""examples/adopt: a process that the example itself starts, adopted over a real sshd."""

from __future__ import annotations

import getpass
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.model import State
from tests.support.commands.command_line import PATIENCE_SECONDS
from tests.support.commands.example_runs import EXAMPLES, Person
from tests.support.jobs.prepared_store import put_new_store
from tests.support.servers.sshd import Sshd, running_sshd
from tests.support.waiting import until

EXAMPLE = EXAMPLES / "adopt"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def test_it_is_watched_to_its_end_and_its_model_copied(person: Person, sshd: Sshd, tmp_path: Path) -> None:
    config = person.folder / "ssh_config"
    (person.folder / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
    config.write_text(
        f"Host gpu-box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {sshd.client_key}\n  UserKnownHostsFile {person.folder / 'known_hosts'}\n"
    )
    run = tmp_path / "run"
    started = person.run(EXAMPLE / "start-by-hand.sh", run, "40", "0.05")
    assert started.code == 0, started.err
    until(lambda: "step 1/40" in (run / "train.log").read_text(), "the first step")
    training = int((run / "pid").read_text())
    os.kill(training, signal.SIGSTOP)  # so that it does not end before it is adopted, however long that takes
    put_new_store(person.home.path / "stationmaster.db")  # which the test looks into before anything was adopted
    words = [str(EXAMPLE / "adopt.sh"), "gpu-box", str(run), "model"]
    environ = {**person.environ, "STATIONMASTER_SSH__CONFIG_PATH": str(config)}

    def states() -> list[State]:
        return [job.state for job in person.home.store.jobs.listed(with_ended=False)]

    with subprocess.Popen(
        words, env=environ, cwd=person.folder, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as adopting:
        try:
            until(lambda: states() == [State.EXECUTING], "the adopted training", story=lambda: str(states()))
            os.kill(training, signal.SIGCONT)
            said, _ = adopting.communicate(timeout=PATIENCE_SECONDS)
        except BaseException:
            os.killpg(adopting.pid, signal.SIGKILL)
            raise
    assert adopting.returncode == 0, said
    assert "COMPLETED" in said
    assert [path.name for path in (person.folder / "model").rglob("model.safetensors")] == ["model.safetensors"]
