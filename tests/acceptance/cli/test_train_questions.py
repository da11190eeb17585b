"""`train` at a real terminal asks for what is missing and which machine to rent; in a pipe it never asks."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping

import pytest

from stationmaster.providers.vastai.ssh_keys import ensure_pair
from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.commands.terminal import CTRL_C, Session, at_terminal
from tests.support.jobs.local_world import write_pictures
from tests.support.vast.simulated_vast import API_KEY, quick_settings
from tests.support.waiting import until

_QUICK = ("-p", "seconds_per_step=0", "-p", "save_every=10", "-p", "sample_every=20")
_ROW = re.compile(r"^ ?(\d+) .* (\d{6,})(?: +\w.*)?$", re.MULTILINE)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A person who rents at a simulated Vast.ai whose prices stay as they are; a dataset lies beside them."""
    folder = tmp_path_factory.mktemp("person")
    write_pictures(folder / "cats")
    with simulator_thread(quick_settings(folder / "simulator")) as url, Home(folder) as home:
        home.environ |= {
            "VASTAI_API_KEY": API_KEY,
            "VASTAI_API_BASE_URL": f"{url}/api/v0",
            "VASTAI_SSH_KEY_PATH": str(ensure_pair(folder / "keys" / "id_ed25519").private_path),
            "STATIONMASTER_VASTAI__CALL_SPACING": "0",
            "STATIONMASTER_PROVIDER": "vastai",
        }
        yield home


def asked_at_terminal(home: Home, *words: str, answers: Mapping[str, str]) -> Session:
    argv = [command_server().own_command, *words]
    environ = {**home.environ, "TERM": "xterm", "NO_COLOR": "1", "COLUMNS": "120"}
    return at_terminal(argv, environ=environ, cwd=home.folder, answers=answers, seconds=PATIENCE_SECONDS)


def offers_shown(session: Session) -> dict[int, str]:
    """The ids in the table by their numbers."""
    return {int(number): offer_id for number, offer_id in _ROW.findall(session.shown.replace("\r", ""))}


def test_a_conversation_ends_with_a_job_on_the_machine_that_was_chosen(home: Home) -> None:
    answers = {
        "Recipe, by number or name": "tiny-lora",
        "Dataset (": "cats",
        "Name of the model [cats]": "",
        "Trigger word": "",
        "Steps to train [600]": "20",
        "Provider [vastai]": "",
        "Stop when it has cost": "1",
        "Rent number 1": "2",
        "Rent number 2": "y",
    }
    session = asked_at_terminal(home, "train", "--id", "chosen", *_QUICK, answers=answers)
    assert session.code == 0, session.shown
    command = r"stationmaster train --recipe tiny-lora@1 --dataset cats --name cats --steps 20 .*--id chosen"
    assert re.search(rf"the same without questions:\s+{command}", session.shown)
    assert "job chosen submitted" in session.shown
    rental = until(
        lambda: next((one for one in home.store.rentals.of_job("chosen") if one.offer is not None), None),
        "the machine",
    )
    chosen = offers_shown(session)[2]
    assert rental.offer is not None
    assert (rental.offer.id, home.job("chosen").spec.quote.offer) == (chosen, chosen)
    assert home.job("chosen").spec.max_spend == 1_000_000
    assert home.run("cancel", "chosen", "--yes").code == 0  # the training itself is not the question


def test_a_retry_asks_the_same(home: Home) -> None:
    known = ("train", "--recipe", "tiny-lora@1", "--dataset", "cats", "--id", "old", "--yes", *_QUICK)
    assert home.run(*known).code == 0
    home.run("cancel", "old", "--yes")
    until(lambda: home.job("old").outcome, "the end of the old job")
    session = asked_at_terminal(
        home, "retry", "old", "--id", "new", answers={"Rent number 1": "3", "Rent number 3": "y"}
    )
    assert session.code == 0, session.shown
    assert home.job("new").spec.quote.offer == offers_shown(session)[3]
    assert home.run("cancel", "new", "--yes").code == 0


def test_ctrl_d_and_ctrl_c_at_a_question_change_nothing(home: Home) -> None:
    ended = asked_at_terminal(home, "train", answers={"Recipe, by number or name": "\x04"})
    assert (ended.code, "error: aborted; nothing was changed" in ended.shown) == (1, True)
    known = ("train", "--recipe", "tiny-lora@1", "--dataset", "cats", "--id", "left")
    interrupted = asked_at_terminal(home, *known, answers={"Rent number 1": CTRL_C})
    assert (interrupted.code, "aborted; nothing was changed" in interrupted.shown) == (130, True)
    assert home.run("show", "left").code != 0


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ((), "no recipe given"),
        (("--dataset", "cats"), "no recipe given"),
        (("--recipe", "tiny-lora@1"), "no dataset given"),
        (("--recipe", "tiny-lora@1", "--dataset", "cats"), "this costs money: confirmation needed"),
    ],
)
def test_a_pipe_is_never_asked(home: Home, words: tuple[str, ...], missing: str) -> None:
    for stdin in (subprocess.DEVNULL, subprocess.PIPE):
        done = subprocess.run(
            [command_server().own_command, "train", *words],
            env=home.environ,
            cwd=home.folder,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert done.returncode != 0
        assert done.stderr.startswith(f"error: {missing}")
        assert "\nhint: pass --" in done.stderr
        assert "?" not in done.stdout
        assert "Recipe" not in done.stdout


@pytest.mark.parametrize("option", ["--yes", "--json", "--quiet"])
def test_whoever_wants_no_questions_at_a_terminal_gets_none(home: Home, option: str) -> None:
    session = asked_at_terminal(home, "train", option, answers={})
    assert session.code != 0
    assert session.shown.replace("\r", "").startswith("error: no recipe given\nhint: pass --recipe")


def test_a_script_names_the_offer(home: Home) -> None:
    listed = home.run("offers", "--json").json()["offers"]
    known = ("--recipe", "tiny-lora@1", "--dataset", "cats")
    named = home.run("train", *known, "--offer", listed[2]["id"], "--dry-run", "--json").json()
    assert named["quote"]["offer"] == listed[2]["id"]
    assert named["quote"] in [one["quote"] for one in named["offers"] if one["offer"]["id"] == listed[2]["id"]]
    refused = home.run("train", *known, "--offer", "1", "--yes")
    assert refused.code != 0
    assert refused.err.startswith("error: vastai has no offer 1 that fits tiny-lora@1 now\nhint: `stationmaster")


def test_a_dry_run_prints_the_plan_although_nothing_fits(home: Home) -> None:
    known = ("--recipe", "tiny-lora@1", "--dataset", "cats", "--max-price", "0.001")
    done = home.run("train", *known, "--dry-run")
    assert done.code == 0, done.err
    assert "  cost   unknown: no offer of vastai fits tiny-lora@1: " in done.out
    assert "what helps: submit with --max-price" in done.out
    assert "\n# train\n" in done.out
    assert home.run("train", *known, "--dry-run", "--json").json()["no_offer"]
    assert home.run("train", *known, "--yes").code != 0
