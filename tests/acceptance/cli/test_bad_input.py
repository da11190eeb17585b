"""Whatever a person gets wrong: one line that names it, a hint, a documented exit code, and no traceback."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from PIL import Image

from tests.support.capabilities import require
from tests.support.commands.cli_runs import COMMAND, Home, Ran

TRAIN = ("train", "--recipe", "tiny-lora@1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """A home with a store in it, for commands that change nothing."""
    with Home(tmp_path_factory.mktemp("shared")) as home:
        assert home.run("jobs").code == 0
        yield home


def told(ran: Ran, code: int, *words: str) -> None:
    """One line that says what is wrong, at most one more with a hint."""
    assert ran.code == code, ran.err
    first, *rest = ran.err.strip().splitlines()
    assert first.startswith("error: "), ran.err
    assert len(rest) <= 1, ran.err
    assert all(line.startswith("hint: ") for line in rest)
    for word in words:
        assert word in ran.err, ran.err
    assert ran.out == ""


JOB_FILES = [
    ("recipe: [tiny", 2, ["job.yaml", "YAML"]),
    ("- just\n- a list\n", 2, ["must contain options by name"]),
    ("recipe: tiny-lora@1\ndata_set: x\n", 2, ["data_set is not an option", "did you mean `dataset`?"]),
    ("recipe: tiny-lora@1\nprovider: [x]\ndataset: .\n", 2, ["provider must be text"]),
    ("recipe: tiny-lora@1\ndataset: .\nparameters: 7\n", 2, ["parameters must be a table"]),
    ("recipe: tiny-lora@1\ndataset: .\nmax_hours: soon\n", 2, ["max_hours"]),
    ("recipe: tiny-lora@1\ndataset: .\nmax_price: free\n", 2, ["max_price", "dollars"]),
    ("dataset: .\n", 2, ["no recipe"]),
    ("recipe: tiny-lora@1\n", 2, ["no dataset"]),
    ("recipe: tiny-laura@1\ndataset: .\n", 6, ["tiny-laura", "tiny-lora"]),
    ("recipe: tiny-lora@1\ndataset: nowhere\n", 6, ["nowhere"]),
    ("recipe: tiny-lora@1\ndataset: .\nowner: nobody\n", 6, ["no user nobody", "users add nobody"]),
    ("recipe: tiny-lora@1\ndataset: .\n", 5, ["image"]),
    ("a: " + "[" * 5000, 2, ["nested too deeply", "YAML"]),
    ("recipe: tiny-lora@1\nrecipe: x\n", 2, ["`recipe` is given twice (line 2)"]),
    ("recipe: tiny-lora@1\ndataset: .\nparameters: {1: 2}\n", 2, ["parameters: 1 is not a name", "hint: "]),
    (
        'recipe: tiny-lora@1\ndataset: .\ntrigger: "\\ud800"\n',
        2,
        ["trigger contains characters that are not valid"],
    ),
    ('recipe: tiny-lora@1\ndataset: .\nparameters: {"a\\0": 1}\n', 2, ["contains characters that are not valid text"]),
    ("recipe: tiny-lora@1\ndataset: .\nexecution: 5\n", 2, ["execution must contain only a provider", "hint: "]),
    ("recipe: tiny-lora@1\ndataset: .\nexecution: {nope: 1}\n", 2, ["execution must contain only a provider"]),
    (
        "recipe: tiny-lora@1\ndataset: .\nname: 7\n",
        2,
        ["name must be text", 'hint: write it in quotes, for example name: "x"'],
    ),
    ("recipe: tiny-lora@1\ndataset: .\nmax_price: 0\n", 2, ["max_price must be above zero", "hint: "]),
    ("recipe: tiny-lora@1\ndataset: .\nmonitoring: {gracePeriod: x}\n", 3, ["monitoring.gracePeriod", "hint: "]),
    (f"recipe: tiny-lora@1\ndataset: .\nname: {'x' * 100_000}\n", 2, ["name is longer than 200", "hint: "]),
]


@pytest.mark.parametrize(("text", "code", "words"), JOB_FILES)
def test_a_job_file_that_cannot_be_used(shared: Home, tmp_path: Path, text: str, code: int, words: list[str]) -> None:
    (tmp_path / "job.yaml").write_text(text)
    told(shared.run("train", str(tmp_path / "job.yaml"), "--yes"), code, *words)


def test_a_parameter_of_the_wrong_type(shared: Home, pictures: Path) -> None:
    ran = shared.run(*TRAIN, "--dataset", str(pictures), "-p", "rank=high")
    assert ran.code in (2, 4)
    told(ran, ran.code, "rank")
    told(shared.run(*TRAIN, "--dataset", str(pictures), "-p", "rank"), 2, "NAME=VALUE")


@pytest.mark.parametrize("option", ["--provider=ssh", "--driver=local", "--driver=vastai"])
def test_a_provider_that_is_not_set_up(shared: Home, pictures: Path, option: str) -> None:
    setting = "set VASTAI_API_KEY" if "vastai" in option else "set ssh.hosts"
    for words in (("offers",), ("estimate", "tiny-lora@1"), (*TRAIN, "--dataset", str(pictures))):
        told(shared.run(*words, option), 3, f"hint: {setting}")


def test_what_does_not_exist(shared: Home) -> None:
    told(shared.run("show", "nobody"), 6, "nobody", "hint: ")
    told(shared.run("train"), 2, "no recipe given", "hint: ")
    told(shared.run("train", "/nowhere/job.yaml"), 6, "/nowhere/job.yaml", "hint: ")
    told(shared.run("cancel", ""), 6, "hint: ")
    told(shared.run("show", "x" * 100_000), 6, "there is no job xxx", "hint: ")
    told(shared.run("models", "show", ""), 6, "the name of the model is empty", "hint: ")
    told(shared.run("models", "publish", " "), 6, "the name of the model is empty")
    told(shared.run("costs", "--job", ""), 6, "the name of the job is empty")
    told(shared.run("notify", "inbox", "--user", "nope"), 6, "there is no user nope", "hint: ")


USAGE = [
    (("jobs", "--limit", "x"), ["--limit", "hint: run stationmaster jobs -h"]),
    (("show",), ["missing argument 'JOB'", "hint: run stationmaster show -h"]),
    (("nope",), ["no such command 'nope'", "hint: run stationmaster -h"]),
    (("jobs", "--log-level", "loud"), ["--log-level: loud is not a level", "hint: use one of: DEBUG, INFO"]),
    (("sweep", "--include-foreign"), ["--include-foreign has an effect only with --all", "hint: add --all"]),
    (
        ("sweep", "--include-foreign", "--all", "--installation", "x"),
        ["--include-foreign has an effect only with --all", "hint: add --all without --installation"],
    ),
    (("sweep", "--count", "2"), ["--count has an effect only with --all or --installation", "hint: leave it out"]),
    (("sweep", "--force", "--count", "2"), ["--count has an effect only with --all or --installation"]),
    (("train", "--nam", "x"), ["no such option --nam", "hint: did you mean `--name`", "stationmaster train -h"]),
]


@pytest.mark.parametrize(("words", "said"), USAGE)
def test_a_command_line_that_cannot_be_read(shared: Home, words: tuple[str, ...], said: list[str]) -> None:
    told(shared.run(*words), 2, *said)


@pytest.mark.parametrize("words", [("show", "a\udcff"), ("train", "--name", "\udcff"), ("dataset", "check", "\udcff")])
def test_words_that_are_not_utf_8(shared: Home, words: tuple[str, ...]) -> None:
    told(shared.run(*words), 2, "\\udcff is not UTF-8 text", "hint: ")


def test_a_name_with_a_line_break_leaves_the_error_one_line(shared: Home) -> None:
    told(shared.run("show", "a\nb\x1b[31m"), 6, "a\\nb\\x1b[31m")


@pytest.mark.parametrize("loading", ["stationmaster.errors", "typer", "stationmaster.cli.commands"])
def test_ctrl_c_while_the_program_is_still_loading(loading: str) -> None:
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED, loading], capture_output=True, text=True, timeout=150)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


_INTERRUPTED = """
import sys

class CtrlC:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            raise KeyboardInterrupt

sys.meta_path.insert(0, CtrlC())
from stationmaster.cli.main import main
main()
"""


def test_numbers_that_nothing_could_count(shared: Home) -> None:
    told(shared.run("jobs", "--limit", "9" * 20), 2, "--limit", "hint: ")
    told(shared.run("notify", "inbox", "--limit", "9" * 20), 2, "--limit", "hint: ")
    told(shared.run("simulator", "--credit", "inf"), 2, "--credit", "hint: ")
    told(shared.run("simulator", "--speed", "nan"), 2, "--speed", "hint: ")


PEOPLE = [
    (("--telegram-id", "x"), "--telegram-id: is not a Telegram chat"),
    (("--discord-id", "abc"), "--discord-id: is not a Discord user ID"),
    (("--email", "ann"), "--email: is not an e-mail address"),
    (("--email", "ann@example.com\nBcc: all@example.com"), "--email: is not an e-mail address"),
    (("--quiet-hours", "22:00-22:00"), "--quiet-hours: '22:00-22:00' is an empty span of hours"),
]


@pytest.mark.parametrize(("words", "said"), PEOPLE)
def test_people_who_could_not_be_reached(shared: Home, words: tuple[str, ...], said: str) -> None:
    told(shared.run("users", "add", "ann", *words), 2, said, "hint: ")
    assert shared.run("users", "list", "--json").json() == []


def test_a_user_without_a_name(shared: Home) -> None:
    told(shared.run("users", "add", ""), 2, "printable", "hint: ")


def test_hosts_that_cannot_be_asked(shared: Home) -> None:
    for host in ("127.0.0.1:99999", ":22", "", "a b:22", f"{'a' * 64}:22", "x:٣"):
        told(shared.run("keys", "trust", host), 2, "is not a host", "hint: ")
    told(shared.run("keys", "trust", "127.0.0.1:1"), 30, "cannot be reached", "hint: check the address")


def test_an_archive_takes_nothing_else_s_place(shared: Home, pictures: Path, tmp_path: Path) -> None:
    letter = tmp_path / "letter.txt"
    letter.write_text("dear all")
    told(shared.run("dataset", "pack", str(pictures), str(letter)), 2, "is not an archive", "--force")
    assert letter.read_text() == "dear all"
    told(shared.run("dataset", "pack", str(pictures), "/dev/full"), 2, "neither a file nor a folder", "hint: ")
    assert Path("/dev/full").is_char_device()
    assert shared.run("dataset", "pack", str(pictures), str(letter), "--force").code == 0
    assert shared.run("dataset", "pack", str(pictures), str(letter)).code == 0, "an archive may be written again"


def test_a_folder_that_cannot_be_written(shared: Home, pictures: Path) -> None:
    told(shared.run("dataset", "check", str(pictures), "--fix", "/proc/x"), 2, "/proc", "hint: ")
    told(shared.run("recipes", "new", "/proc/x"), 2, "/proc", "hint: ")
    for command in ("worker", "up", "simulator"):
        told(shared.run("--home", "/etc/passwd/home", command), 3, "/etc/passwd/home", "hint: ", "--home")


def test_a_script_of_faults_that_cannot_be_played(shared: Home, tmp_path: Path) -> None:
    script = tmp_path / "faults"
    for content in (b"\xff\xfe\x00", b"[" * 100_000, b'{"seed": "x", "storm": {}}', b"- 1\n"):
        script.write_bytes(content)
        told(shared.run("simulator", "--faults", str(script)), 3, "hint: ")
    told(shared.run("simulator", "--faults", str(tmp_path / "nowhere")), 3, "nowhere", "hint: ")


def test_a_recipe_with_a_number_that_nothing_can_hold(shared: Home, tmp_path: Path) -> None:
    (tmp_path / "recipe.json").write_text(f'{{"version": {"9" * 6000}}}')
    ran = shared.run("recipes", "lint", str(tmp_path))
    assert (ran.code, "a number has too many digits" in ran.out) == (4, True)
    assert len(ran.err.splitlines()) == 1


def test_lint_says_each_thing_once(shared: Home, tmp_path: Path) -> None:
    (tmp_path / "recipe.yaml").write_text("name: x\n")
    ran = shared.run("recipes", "lint", str(tmp_path))
    assert ran.code == 4
    said = [line for line in ran.out.splitlines() if line.strip()]
    assert said
    assert not any(line in ran.err for line in said)


def test_settings_that_are_wrong(shared: Home) -> None:
    told(shared.run("jobs", STATIONMASTER_WORKER__SLOTS="many"), 3, "worker.slots", "hint: ")
    told(shared.run("jobs", STATIONMASTER_WORKR__SLOTS="3"), 3, "did you mean `STATIONMASTER_WORKER__SLOTS`?")
    told(shared.run("jobs", STATIONMASTER_DATABASE_URL="mysql://host/db"), 3, "mysql", "PostgreSQL")


def test_a_home_that_cannot_be_written(shared: Home, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    told(shared.run("--home", str(tmp_path / "file" / "home"), "jobs"), 3, "cannot write", "--home")


def test_a_store_that_is_newer_or_damaged(shared: Home, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    shutil.copy(shared.path / "stationmaster.db", home)
    with closing(sqlite3.connect(home / "stationmaster.db")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    told(shared.run("--home", str(home), "jobs"), 11, "9999", "hint: upgrade")
    (home / "stationmaster.db").write_text("no database at all, but a long letter. " * 50)
    told(shared.run("--home", str(home), "jobs"), 10, "the store cannot be used", "hint: ")


def test_a_disk_that_is_full(shared: Home, tmp_path: Path) -> None:
    require("network namespaces")  # where those are allowed, a small file system can be mounted as well
    images, small = tmp_path / "images", tmp_path / "small"
    images.mkdir()
    small.mkdir()
    for number in range(4):
        noise = Image.frombytes("RGB", (900, 900), Random(number).randbytes(900 * 900 * 3))  # cannot be made smaller
        noise.save(images / f"{number}.png")
    commands: list[tuple[list[str], int]] = [
        (["dataset", "pack", str(images), str(small / "images.tar")], 8),
        (["--home", str(small / "home"), *TRAIN, "--dataset", str(images)], 8),
    ]
    for command, code in commands:
        ran = _on_a_small_disk(small, command, shared)
        told(ran, code, "hint: ")
        assert "disk" in ran.err or "room" in ran.err


def test_a_store_whose_disk_is_full(shared: Home, tmp_path: Path) -> None:
    require("network namespaces")
    store = ["--home", str(tmp_path / "home"), "users"]
    fill = f'"$@" list >/dev/null; cat /dev/zero >"{tmp_path}/fill" 2>/dev/null; exec "$@" add ann'
    ran = _on_a_small_disk(tmp_path, store, shared, then=fill)
    told(ran, 8, "the store's disk is full", "hint: ")


def _on_a_small_disk(folder: Path, command: list[str], home: Home, *, then: str = 'exec "$@"') -> Ran:
    script = f'mount -t tmpfs -o size=4m none "$1" && shift && {then}'
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(folder), COMMAND, *command],
        env=home.environ,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    return Ran(code=done.returncode, out=done.stdout, err=done.stderr)


def test_every_exit_code_of_the_error_tree_is_told_apart_and_documented() -> None:
    from stationmaster import errors

    page = Path(__file__).parents[3] / "docs" / "reference" / "exit-codes.md"
    documented = {int(number) for number in re.findall(r"^\| (\d+) \|", page.read_text(), re.MULTILINE)}
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    codes = {kind.exit_code for kind in kinds if issubclass(kind, errors.StationmasterError)}
    assert codes <= documented
    assert not {code for code in codes if 40 <= code < 50}, "these tell how a job ended"
