"""The example bot as people use it: a real process between a messenger's API and a real `serve`."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from stationmaster.model import Job, Right, Role
from stationmaster.station.http.dataset_upload import upload_dataset
from stationmaster.station.http.station import HttpStation
from stationmaster.station.local.station import open_station
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from tests.support.commands.command_line import command_server
from tests.support.commands.example_runs import EXAMPLES
from tests.support.jobs.local_world import write_pictures
from tests.support.servers.messenger_server import TELEGRAM_TOKEN, MessengerServer
from tests.support.waiting import until

BOT = EXAMPLES / "telegram-bot" / "bot.py"
CHAT, STRANGER = 4711, 666


@dataclass(kw_only=True)
class Bench:
    """What a person sees of the bot, and the station behind it as the bot's user."""

    messenger: MessengerServer
    station: HttpStation
    home: Path
    pictures: Path
    read: int = 0

    def say(self, text: str, *, chat: int = CHAT) -> str:
        self.messenger.write_to_bot(chat, text)
        return self.answer()

    def press(self, name: str) -> str:
        button = next(each for each in self.messenger.buttons() if each["text"] == name)
        self.messenger.press_button(CHAT, button["callback_data"])
        return self.answer()

    def answer(self) -> str:
        """The bot's next message."""
        texts = until(lambda: self.messenger.texts()[self.read :], "the bot answers")
        self.read += 1
        return texts[0]

    def dataset(self) -> str:
        return str(upload_dataset(self.station.connection, self.pictures))

    def jobs(self) -> list[Job]:
        return list(self.station.jobs.listed(with_ended=True))


@contextmanager
def process(argv: list[str], environ: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(argv, env=environ, cwd=folder, **pipes) as running:  # type: ignore[call-overload]
        try:
            yield running
        finally:
            running.terminate()


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("bot")
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), "STATIONMASTER_HOME": str(folder / "home")}
    with closing(open_station(environ)) as station:
        station.users.add("telegram", UserChanges(inbox=True, role=Role.USER))
        new = NewToken(name="bot", user="telegram", rights=frozenset({Right.READ, Right.TRAIN}))
        token = station.tokens.create(new).secret
    with ExitStack() as opened:
        messenger = opened.enter_context(MessengerServer())
        serve = [command_server().own_command, "serve", "--port", "0"]
        server = opened.enter_context(process(serve, environ, folder))
        assert server.stdout is not None
        url = server.stdout.readline().split()[-1]
        settings = {
            "PATH": os.environ["PATH"],
            "TELEGRAM_API_URL": f"{messenger.url}/telegram",
            "TELEGRAM_BOT_TOKEN": TELEGRAM_TOKEN,
            "TELEGRAM_CHATS": str(CHAT),
            "STATIONMASTER_SERVER": url,
            "STATIONMASTER_TOKEN": token,
        }
        opened.enter_context(process([sys.executable, str(BOT)], settings, folder))
        there = opened.enter_context(closing(HttpStation(url, token)))
        pictures = write_pictures(folder / "pictures")
        yield Bench(messenger=messenger, station=there, home=folder / "home", pictures=pictures)
    assert messenger.wrong == []


def test_a_training_is_proposed_confirmed_and_stopped(bench: Bench) -> None:
    before = len(bench.jobs())
    shown = bench.say(f"/train tiny-lora@1 {bench.dataset()} steps=7 name=cats seconds_per_step=0")
    assert "cats: tiny-lora@1, 6 examples" in shown
    assert "Machine: loopback" in shown
    assert "Time: " in shown
    assert "Cost: $0.00" in shown
    assert [button["text"] for button in bench.messenger.buttons()] == ["Confirm", "Decline"]
    assert len(bench.jobs()) == before, "nothing is submitted before the yes"
    said = bench.press("Confirm")
    job = bench.jobs()[0]
    assert f"Job {job.id} submitted. /status {job.id}" in said
    assert "no worker is running" in said
    assert (job.spec.name, job.spec.owner, job.spec.parameters["steps"]) == ("cats", "telegram", 7)
    assert f"{job.id} cats: QUEUED" in bench.say("/jobs")
    assert "tiny-lora@1 on loopback" in bench.say(f"/status {job.id}")
    assert bench.say(f"/stop {job.id}").startswith(f"{job.id}: ")
    assert bench.say(f"/cancel@some_bot {job.id}").startswith(f"{job.id}: ")


def test_a_button_that_is_pressed_twice_submits_once(bench: Bench) -> None:
    before = len(bench.jobs())
    bench.say(f"/train tiny-lora@1 {bench.dataset()}")
    first, again = bench.press("Confirm"), bench.press("Confirm")
    assert " submitted. " in first
    assert " was submitted already. " in again
    assert len(bench.jobs()) == before + 1


def test_a_declined_or_expired_proposal_is_not_submitted(bench: Bench) -> None:
    before = len(bench.jobs())
    bench.say(f"/train tiny-lora@1 {bench.dataset()}")
    assert bench.press("Decline") == "Declined; nothing was submitted."
    assert bench.press("Confirm").startswith("Error: there is no proposal ")
    bench.say(f"/train tiny-lora@1 {bench.dataset()}")
    with closing(sqlite3.connect(bench.home / "stationmaster.db", timeout=30)) as store, store:
        store.execute("UPDATE proposals SET expires_at = 1")
    said = bench.press("Confirm")
    assert "has expired" in said
    assert "Hint: propose it again" in said
    assert len(bench.jobs()) == before


def test_photos_with_captions_become_a_dataset(bench: Bench) -> None:
    for number, picture in enumerate(sorted(bench.pictures.glob("*.png"))):
        bench.messenger.send_photo_to_bot(CHAT, picture.read_bytes(), f"ohwx, picture {number}")
        assert "Added to photos-4711" in bench.answer()
    assert "tiny-lora@1, 6 examples" in bench.say("/train tiny-lora@1 photos name=mine")
    bench.press("Confirm")
    assert bench.jobs()[0].spec.name == "mine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("/train", "write /train RECIPE DATASET"),
        ("/train tiny-lora@1 upload:00000000000000000000000000000000", "there is no upload 0000"),
        ("/train tiny-lora@1 /etc/passwd", "is not an address of a dataset"),
        ("/train tiny-lora@1 s3://private/things", "only administrators may train on s3://private/things"),
        ("/status nothing", "there is no job nothing"),
        ("/cancel ../../users", "there is nothing at this address"),
        ("hello", "/train RECIPE DATASET"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_hint(bench: Bench, text: str, words: str) -> None:
    assert words in bench.say(text)


def test_other_chats_are_told_their_id_and_nothing_else(bench: Bench) -> None:
    assert bench.say("/jobs", chat=STRANGER).startswith(f"This chat ({STRANGER}) may not use this bot.")
