"""After a whole run with planted secrets, none is on the machine, in the store, in a log, in an argv or an error."""

from __future__ import annotations

import os
import secrets
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import require
from tests.support.commands.command_line import stationmaster
from tests.support.jobs.local_world import write_pictures
from tests.support.programs import ROOT, program
from tests.support.servers.comfydeploy_server import COMFY_KEY, ComfyDeployServer
from tests.support.servers.hub_server import HUB_USER, HubServer
from tests.support.servers.messenger_server import TELEGRAM_TOKEN, MessengerServer
from tests.support.servers.s3_servers import SECRET_KEY, rclone_s3

TOKEN = f"hf_{secrets.token_hex(16)}"  # no other test has it, wherever it leaves its own for a moment
SIGNATURE = "X-Amz-Signature"  # of signed addresses, which are secrets themselves
PLANTED = {"the Hub's token": TOKEN, "the bucket's key": SECRET_KEY, "ComfyDeploy's key": COMFY_KEY}
PLANTED |= {"Telegram's token": TELEGRAM_TOKEN, "a signed address": SIGNATURE}


class Finished:
    """What a run left behind."""

    def __init__(self, folder: Path, said: str, hub: HubServer, comfy: ComfyDeployServer) -> None:
        self.folder = folder
        self.said = said
        self.hub = hub
        self.comfy = comfy


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    require("strace")
    folder = tmp_path_factory.mktemp("run")
    write_pictures(folder / "pictures")
    servers = tmp_path_factory.mktemp("s3")
    with HubServer() as hub, ComfyDeployServer() as comfy, MessengerServer() as chat, rclone_s3(servers) as bucket:
        hub.users[TOKEN] = HUB_USER
        hub.refuse("POST .*/commit/", 429, headers={"Retry-After": "0"})
        hub.refuse("PUT /lfs/", 500)
        comfy.refusals.append(500)
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "STATIONMASTER_HOME": str(folder / "home"),
            "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.4",
            "STATIONMASTER_NOTIFY__TELEGRAM_ID": "1",
            "STATIONMASTER_HUB__PUBLISH": "true",
            "STATIONMASTER_HUB__URL": hub.url,
            "HF_TOKEN": TOKEN,
            "STATIONMASTER_COMFYDEPLOY__RETRY": "0.1",
            **bucket.environment(),
            **comfy.environ,
            **chat.environ,
        }
        traced = ["strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "-s", "65536", "-o", str(folder / "trace")]
        done = subprocess.run(
            [*traced, *program("jobs.secret_run"), str(folder)],
            cwd=ROOT,
            env=environ,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
        )
        (folder / "home" / "worker.log").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, done.stderr[-3000:]
        yield Finished(folder, done.stdout, hub, comfy)


def test_the_run_used_every_secret_that_is_looked_for(finished: Finished) -> None:
    assert finished.said.strip().endswith("COMPLETED")
    assert any(request.user == "anna" for request in finished.hub.requests)
    assert finished.comfy.downloads, "ComfyDeploy was told"
    assert SIGNATURE in finished.comfy.downloads[0].link
    assert "execve(" in (finished.folder / "trace").read_text()
    assert "trackside.pyz" in (finished.folder / "trace").read_text()
    assert list((finished.folder / "machine").rglob("plan.json")), "the machine's files were kept to be looked at"


@pytest.mark.parametrize("what", PLANTED)
def test_no_secret_is_on_the_machine(what: str, finished: Finished) -> None:
    in_memory = [path for path in Path("/dev/shm").iterdir() if not path.name.startswith("pytest-of-")]
    assert holders([finished.folder / "machine", *in_memory], PLANTED[what]) == []


@pytest.mark.parametrize("what", PLANTED)
def test_no_secret_is_in_the_store_the_logs_or_any_file_at_home(what: str, finished: Finished) -> None:
    assert holders([finished.folder / "home"], PLANTED[what]) == []
    with sqlite3.connect(finished.folder / "home" / "stationmaster.db") as store:
        dump = "\n".join(store.iterdump())
    store.close()
    assert "delivery" in dump
    assert PLANTED[what] not in dump


@pytest.mark.parametrize("what", PLANTED)
def test_no_secret_is_in_any_argv(what: str, finished: Finished) -> None:
    called = [line for line in (finished.folder / "trace").read_text().splitlines() if "execve(" in line]
    assert [line for line in called if PLANTED[what] in line] == []


def test_errors_of_delivery_say_no_secret(finished: Finished) -> None:
    """The worst that can be got out of the verbs: every place refuses."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(finished.folder),
        "STATIONMASTER_HOME": str(finished.folder / "home"),
        "STATIONMASTER_HUB__URL": "http://127.0.0.1:9",
        "HF_TOKEN": TOKEN,
        "STATIONMASTER_BUCKET__NAME": "models",
        "STATIONMASTER_BUCKET__ENDPOINT": "http://127.0.0.1:9",
        "STATIONMASTER_BUCKET__ACCESS_KEY": "k",
        "STATIONMASTER_BUCKET__SECRET_KEY": SECRET_KEY,
    }
    for verb in (["publish", "secret"], ["publish", "no-such-model"]):
        done = stationmaster("models", *verb, environ=environ)
        assert done.returncode not in (0, 70), done.stderr
        assert done.stderr.startswith("error: ")
        assert [what for what, planted in PLANTED.items() if planted in done.stdout + done.stderr] == []


def holders(folders: list[Path], secret: str) -> list[Path]:
    """Every file below the folders that has the secret in it."""
    below = [path for folder in folders for path in (folder, *folder.rglob("*"))]
    files = [path for path in below if path.is_file() and not path.is_symlink()]
    return [path for path in files if secret.encode() in _content(path)]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""  # another process's, and gone or closed to us
