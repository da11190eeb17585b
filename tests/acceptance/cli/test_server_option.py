"""Every command against a real `serve`: it prints what the same command prints beside the store, or it refuses.

One training is submitted, watched and pulled by a client that has an address and a token, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stationmaster.cli.commands import COMMANDS, loaded_tree
from tests.support.commands.cli_runs import QUICK, Ran, without_ages
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.commands.served_home import Client, ServedHome
from tests.support.commands.terminal import at_terminal
from tests.support.jobs.local_world import write_pictures

Word = str | Path
Words = tuple[Word, ...]

READS: tuple[str, ...] = (
    "analyze done",
    "audit",
    "costs",
    "costs done",
    "credits export",
    "credits show",
    "credits statement me",
    "compare done done",
    "credits verify",
    "doctor",
    "estimate tiny-lora@1 --images 12",
    "instances",
    "jobs",
    "jobs --all",
    "jobs prune --older-than 0s --with-models",
    "logs done",
    "logs done --follow",
    "logs done --errors",
    "logs done --grep loss",
    "logs done --tail 3",
    "metrics done",
    "metrics done --series loss --table StepMetric",
    "models list",
    "models show cats",
    "notify inbox --keep",
    "offers --recipe tiny-lora@1 --provider loopback",
    "recipes list --all",
    "recipes show tiny-lora@1",
    "retry done --dry-run",
    "show done",
    "show done --events",
    "sweep",
    "tokens list",
    "users list",
    "watch done",
)
"""Compared with what is printed beside the store, as text and as JSON."""

REFUSALS: tuple[str, ...] = (
    "adopt ann@127.0.0.1:1 --log /tmp/*.log --output /tmp/out --yes",
    "cancel done --yes",
    "credits refund done 0.5 --reason mistake",
    "models publish cats",
    "models show cast",
    "recipes show tiny-lra@1",
    "sample done",
    "save done",
    "show dnoe",
    "stop done",
    "train --recipe no-such@1 --dataset .",
)
"""What an ended job, this installation or the request itself does not allow: the same words and exit code."""

CHANGES: tuple[str, ...] = (
    "users add ann --email ann@example.com",
    "users set ann --telegram-id 123456 --role viewer",
    "users show ann",
    "tokens create laptop --user ann --right read",
    "tokens link --user ann",
    "tokens revoke TOKEN",
    "users rm ann",
    "credits grant me 5 --reason more",
    "credits adjust me -1 --reason mistake",
    "notify test",
)
"""Made on the server, in this order."""

ON_FILES: tuple[str, ...] = (
    "dataset check PICTURES --min-images 2",
    "dataset pack PICTURES TARGET/set.tar",
    "parse TARGET/log.txt",
    "recipes lint TARGET/mine/recipe.yaml",
    "recipes new TARGET/mine",
    "replay TARGET/log.txt",
)
"""Files of this computer are read here, whatever the server is."""

ON_THE_HOME: tuple[str, ...] = ("completion", "trust")
"""About this computer only; test_completion.py and tests/hostile/test_settings_of_a_folder.py try them."""

TRAINING = ("jobs rm", "models download", "pull", "retry", "train")
"""What the tests of the training itself run."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with ServedHome(tmp_path_factory.mktemp("served"), STATIONMASTER_BILLING__ENABLED="true") as opened:
        yield opened


@pytest.fixture(scope="module")
def client(served: ServedHome, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("client"), served.url, served.token())


@pytest.fixture(scope="module")
def trained(client: Client, pictures: Path) -> Ran:
    """The job `done`, trained to its end on the server."""
    granted = client.run("credits", "grant", "me", "5", "--reason", "welcome")
    assert granted.code == 0, granted.err
    train = ("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--name", "cats", "--id", "done")
    ran = client.run(*train, "--watch", *QUICK)
    assert ran.code == 0, ran.err
    return ran


def test_a_training_is_submitted_and_watched_from_elsewhere(trained: Ran) -> None:
    for words in ("cost   $0.00", "job done submitted", "EXECUTING", "COMPLETED", "20/20 (100%)", "\nanalysis  "):
        assert words in trained.out
    assert "worker started" not in trained.out


def test_the_same_id_again_changes_nothing(client: Client, trained: Ran, pictures: Path) -> None:
    again = client.run("train", "--recipe", "tiny-lora@1", "--dataset", str(pictures), "--id", "done", "--steps", "9")
    assert (again.code, again.err) == (0, "")
    assert "already exists; nothing was changed" in again.out


def test_a_terminal_shows_the_progress_of_the_upload(client: Client, tmp_path: Path) -> None:
    other = write_pictures(tmp_path / "kittens", count=5)
    words = ("train", "--recipe", "tiny-lora@1", "--dataset", str(other), "--dry-run")
    environ = {**client.environ, "TERM": "xterm-256color", "NO_COLOR": "1", "LC_ALL": "C.UTF-8"}
    session = at_terminal(
        [command_server().own_command, *words], environ=environ, cwd=tmp_path, answers={}, seconds=PATIENCE_SECONDS
    )
    assert session.code == 0, session.shown
    assert re.search(r"\rpacking kittens 100% ━+  [0-9.]+ kB/[0-9.]+ kB", session.shown)
    assert re.search(r"\ruploading kittens 100% ━+  [0-9.]+ kB/[0-9.]+ kB", session.shown)
    assert "# train" in session.shown


def test_the_questions_of_train_work_with_a_server_too(client: Client, tmp_path: Path) -> None:
    """A dataset of this computer is checked here, by the rules of the server's recipe."""
    write_pictures(tmp_path / "kittens", count=5)
    answers = {
        "Recipe, by number or name": "tiny-lora@1",
        "Dataset (": "kittens",
        "Name of the model [kittens]": "",
        "Trigger word": "",
        "Steps to train": "9",
        "Stop when it has cost": "",
    }
    environ = {**client.environ, "COLUMNS": "120"}
    session = at_terminal(
        [command_server().own_command, "train", "--dry-run"],
        environ=environ,
        cwd=tmp_path,
        answers=answers,
        seconds=PATIENCE_SECONDS,
    )
    assert session.code == 0, session.shown
    assert "5 images, 5 captions: good to train" in session.shown
    assert "Provider" not in session.shown
    assert "kittens: tiny-lora@1 on loopback, 5 images" in session.shown


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize("command", READS)
def test_a_command_prints_the_same_with_a_server(
    served: ServedHome, client: Client, trained: Ran, command: str, as_json: bool
) -> None:
    words = [*command.split(), *(["--json"] if as_json else [])]
    there, here = client.run(*words), served.run(*words)
    assert (there.code, there.err) == (here.code, here.err)
    assert _timeless(there.out) == _timeless(here.out)


@pytest.mark.parametrize("command", REFUSALS)
def test_a_refusal_has_the_same_words_and_exit_code(
    served: ServedHome, client: Client, trained: Ran, command: str
) -> None:
    there, here = client.run(*command.split()), served.run(*command.split())
    assert there == here


@pytest.mark.parametrize("command", CHANGES)
def test_a_change_is_made_on_the_server(client: Client, command: str) -> None:
    if "TOKEN" in command:
        command = command.replace("TOKEN", client.run("tokens", "list", "--user", "ann", "--json").json()[0]["id"])
    there = client.run(*command.split())
    assert there.code == 0, there.err


def test_a_user_sees_only_what_is_theirs_and_does_what_they_may(
    served: ServedHome, client: Client, trained: Ran
) -> None:
    assert client.run("users", "add", "eve").code == 0
    token = {"STATIONMASTER_TOKEN": served.token("eve")}
    assert client.run("jobs", "--all", **token).out.startswith("no jobs")
    hidden, missing = client.run("show", "done", **token), client.run("show", "dona", **token)
    assert (hidden.code, hidden.err.replace("done", "dona")) == (6, missing.err)
    refused = client.run("users", "add", "mallory", **token)
    assert (refused.code, refused.out) == (13, "")
    assert refused.err.startswith("error: this token of eve is not an administrator")


@pytest.mark.parametrize("command", ON_FILES)
def test_what_reads_files_of_this_computer_needs_no_server(
    tmp_path_factory: pytest.TempPathFactory, pictures: Path, command: str
) -> None:
    target = tmp_path_factory.mktemp("files")
    (target / "log.txt").write_text("1700000000 step 1/2 loss: 0.5\n1700000001 step 2/2 loss: 0.4\n")
    client = Client(target, "http://127.0.0.1:9", "none")
    if "lint" in command:
        assert client.run("recipes", "new", str(target / "mine")).code == 0
    words = command.replace("PICTURES", str(pictures)).replace("TARGET", str(target)).split()
    done = client.run(*words)
    assert done.code == 0, done.err


def test_the_model_and_its_files_are_downloaded_and_verified(
    served: ServedHome, client: Client, trained: Ran, tmp_path: Path
) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    pulled = client.run("pull", "done", str(there))
    assert pulled.code == 0, pulled.err
    assert served.run("pull", "done", str(here)).code == 0
    assert _contents(there) == _contents(here)
    assert "output/cats.safetensors" in _contents(there)
    assert sorted(pulled.out.splitlines()) == sorted(str(there / name) for name in _contents(there))
    model = client.run("models", "download", "cats", str(tmp_path))
    assert model.code == 0, model.err
    (file,) = tmp_path.glob("*.safetensors")
    assert file.read_bytes() == _contents(there)["output/cats.safetensors"]


def test_a_job_is_removed_from_elsewhere(served: ServedHome, client: Client, trained: Ran) -> None:
    refused = client.run("jobs", "rm", "done")
    assert (refused.code, "pass --yes" in refused.err) == (2, True)
    assert client.run("jobs", "rm", "done", "--yes").out == "removed done\n"
    assert served.run("show", "done").code == client.run("show", "done").code == 6


def test_a_token_that_is_not_valid_is_one_line_and_how_to_get_one(client: Client) -> None:
    refused = client.run("jobs", STATIONMASTER_TOKEN="sm_wrong")
    assert refused.code == 12
    assert refused.err.startswith("error: ")
    assert "stationmaster tokens create" in refused.err


def test_commands_on_the_server_s_computer_need_no_token(served: ServedHome) -> None:
    """`up` has written one into the home."""
    asked = served.run("jobs", "--server", served.url)
    assert (asked.code, asked.out) == (0, "no running jobs; --all shows ended ones\n"), asked.err


def test_the_client_kept_nothing_on_its_own_computer(client: Client) -> None:
    assert list(client.home.iterdir()) == []


def test_the_server_wrote_no_token_into_its_logs(served: ServedHome, client: Client) -> None:
    """The last test: it ends the server."""
    served.__exit__()
    token = client.environ["STATIONMASTER_TOKEN"]
    logs = "".join(path.read_text(errors="replace") for path in served.path.rglob("*.log"))
    assert token not in served.said + logs
    assert "Traceback" not in served.said


def test_every_command_is_tried_or_refuses_to_run_with_a_server() -> None:
    tree = loaded_tree()
    tried = {_leaf(tree, command) for command in (*READS, *REFUSALS, *CHANGES, *ON_FILES, *ON_THE_HOME, *TRAINING)}
    refusing = {line.name for line in COMMANDS if line.needs_here}
    leaves = {leaf for leaf in _leaves(tree) if leaf.split()[0] not in refusing}
    assert sorted(leaves - tried) == []


def _leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    for name, command in group.commands.items():
        if not hasattr(command, "commands"):
            yield " ".join((*path, name))
            continue
        if command.invoke_without_command:
            yield " ".join((*path, name))
        yield from _leaves(command, (*path, name))


def _leaf(tree: Any, command: str) -> str:
    words = command.split()
    group = tree.commands[words[0]]
    is_inner = len(words) > 1 and words[1] in getattr(group, "commands", {})
    return " ".join(words[:2] if is_inner else words[:1])


def _timeless(printed: str) -> Any:
    """Without what depends on when the command ran."""
    still = re.sub(r"\b[\d.]+ GiB free\b", "some GiB free", without_ages(printed))  # other programs write, too
    try:
        return json.loads(still, object_hook=_still)
    except ValueError:
        return still


def _still(found: dict[str, Any]) -> dict[str, Any]:
    return {**found, "as_of": None}


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
