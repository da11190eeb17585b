"""What TAB offers, by the words so far: every command and option, values where they are known, and nothing unsafe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.cli.commands import loaded_tree
from stationmaster.cli.completion.answering import answer_lines
from stationmaster.cli.completion.described import table_text
from stationmaster.cli.completion.quoting import quoted_for_bash, typed_words
from stationmaster.cli.completion.table import FILE, KINDS, Word, read_table
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.commands.imports import run
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import put_trained

BREAKS = " \t\n\"'@><=;|&(:"


def leaves(word: Word, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Word]]:
    yield path, word
    for name, inner in word.commands.items():
        yield from leaves(inner, (*path, name))


COMMANDS = dict(leaves(read_table()))


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home"), "PATH": "/usr/bin"}


@pytest.fixture
def with_jobs(environ: dict[str, str], tmp_path: Path) -> dict[str, str]:
    (tmp_path / "home").mkdir()
    store = Store(Database(f"sqlite:///{tmp_path}/home/stationmaster.db"))
    put_trained(store, "aa11", name="cats")
    put_trained(store, "ab22", name="cats")
    put_trained(store, "ff77", name="-rf")
    put_trained(store, "dd55", name="red\x1b[31m")
    store.jobs.submit(spec("cc44", name="dogs"))
    store.close()
    return environ


def offered(environ: dict[str, str], *words: str) -> list[str]:
    """The first line says what the shell does; the others are values here, without their descriptions."""
    return [line.partition("\t")[0] for line in answer_lines(["fish", *words], environ)]


def test_the_table_is_made_from_the_commands() -> None:
    assert FILE.read_text(encoding="utf-8") == table_text(loaded_tree()), "run `make docs`"


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_and_option_is_offered_with_its_description(
    path: tuple[str, ...], environ: dict[str, str]
) -> None:
    word = COMMANDS[path]
    lines = list(answer_lines(["fish", *path, "--"], environ))[1:]
    assert all(line.partition("\t")[2] for line in lines)
    values = {line.partition("\t")[0] for line in lines}
    own = {next(name for name in flag.names if name.startswith("--")) for flag in word.flags}
    assert own <= values
    assert {"--help", "--json"} <= values
    if word.commands:
        assert set(word.commands) <= set(offered(environ, *path, ""))


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_what_a_value_can_be_is_known(path: tuple[str, ...]) -> None:
    values = [*COMMANDS[path].arguments, *(flag.value for flag in COMMANDS[path].flags if flag.value is not None)]
    assert all(value.choices or value.kind in KINDS for value in values)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("sh",), ["words", "show"]),
        (("jobs", "r"), ["words", "rm"]),
        (("--log-level", "W"), ["words", "WARNING"]),
        (("doctor", "--log-level=W"), ["words", "--log-level=WARNING"]),
        (("costs", "--over-time", ""), ["words", "hour", "day"]),
        (("estimate", "tiny"), ["words", "tiny-lora@1"]),
        (("train", "--recipe", "tiny-lora@1", "--sa"), ["words", "--save-every", "--sample-every"]),
        (("train", "--tool", "tiny-lora", "--seco"), ["words", "--seconds-per-step"]),
        (("estimate", "tiny-lora@1", "-p", "sav"), ["partial", "save_every="]),
        (("train", "--driver", "vas"), ["words", "vastai"]),
        (("train", "--dri"), ["words", "--driver"]),
        (("train", "--yes", "--ye"), ["words"]),
        (("train", "--dataset", ""), ["files"]),
        (("pull", "cats", ""), ["folders"]),
        (("show", "--", "--x"), ["words"]),
        (("no-such", ""), ["words", *COMMANDS[()].commands][:1]),
        (("metrics", "unknown"), ["files"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_the_words_so_far_decide(environ: dict[str, str], words: tuple[str, ...], expected: list[str]) -> None:
    assert offered(environ, *words) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("show", ""), ["dogs", "dd55", "ff77", "cats", "aa11"]),  # newest first; a name leads to its newest job
        (("show", "a"), ["ab22", "aa11"]),
        (("stop", ""), ["dogs"]),
        (("retry", ""), ["dd55", "ff77", "cats", "aa11"]),
        (("compare", "dogs", "c"), ["cats", "cc44"][:1]),
        (("costs", "--job", "do"), ["dogs"]),
        (("jobs", "--owner", ""), ["me"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_jobs_are_offered_by_names_that_lead_to_them(
    with_jobs: dict[str, str], words: tuple[str, ...], expected: list[str]
) -> None:
    assert offered(with_jobs, *words)[1:] == expected


def test_control_characters_of_a_name_reach_no_terminal(with_jobs: dict[str, str]) -> None:
    for shell in ("zsh", "fish"):
        assert "\x1b" not in "".join(answer_lines([shell, "show", ""], with_jobs))


def test_with_a_server_only_what_is_local_is_offered(with_jobs: dict[str, str]) -> None:
    for environ, words in (
        (with_jobs, ("--server", "http://127.0.0.1:9")),
        ({**with_jobs, "STATIONMASTER_SERVER": "http://127.0.0.1:9"}, ()),
    ):
        assert offered(environ, *words, "show", "") == ["words"]
        assert offered(environ, *words, "estimate", "tiny") == ["words", "tiny-lora@1"]
        assert offered(environ, *words, "sh") == ["words", "show"]


def test_completion_creates_nothing_and_runs_no_command_of_the_settings(
    environ: dict[str, str], tmp_path: Path
) -> None:
    trap = {"VASTAI_API_KEY_COMMAND": f"touch {tmp_path}/ran"}
    assert offered({**environ, **trap}, "show", "") == ["words"]
    assert offered({**environ, **trap}, "train", "--account", "") == ["words"]
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_read_gets_no_files_beside_it(with_jobs: dict[str, str], tmp_path: Path) -> None:
    before = sorted((tmp_path / "home").iterdir())
    assert "cats" in offered(with_jobs, "show", "")
    assert sorted((tmp_path / "home").iterdir()) == before


@pytest.mark.parametrize(
    "words",
    [("fish", "show", ""), ("bash", "stationmaster show", BREAKS), ("tcsh", "show"), (), ("bash",), ("fish", "\udcff")],
)
@pytest.mark.parametrize("broken", ["settings", "store"])
def test_whatever_is_wrong_there_is_no_message(
    environ: dict[str, str], tmp_path: Path, words: tuple[str, ...], broken: str
) -> None:
    (tmp_path / "home").mkdir()
    if broken == "store":
        (tmp_path / "home" / "stationmaster.db").write_bytes(b"not a database" * 100)
    else:
        environ["STATIONMASTER_NO_SUCH_SETTING"] = "1"
    printed, _ = run("__complete", *words, environ=environ)
    assert "rror" not in printed
    assert "Traceback" not in printed


def test_flags_need_neither_typer_nor_settings(environ: dict[str, str]) -> None:
    printed, modules = run("__complete", "fish", "train", "--rec", environ=environ)
    assert "--recipe" in printed
    assert modules.isdisjoint({"typer", "pydantic", "sqlalchemy", "yaml", "rich", "httpx", "stationmaster.cli.train"})


def test_names_of_jobs_need_neither_typer_nor_the_store(with_jobs: dict[str, str]) -> None:
    printed, modules = run("__complete", "fish", "show", "do", environ=with_jobs)
    assert "dogs" in printed
    assert modules.isdisjoint({"typer", "sqlalchemy", "rich", "httpx", "stationmaster.model"})


@pytest.mark.parametrize(
    ("line", "begun", "kept", "quote"),
    [
        ("sm show ca", "ca", "", ""),
        ("sm show my\\ j", "my j", "", ""),
        ('sm show "my j', "my j", "", '"'),
        ("sm show 'it", "it", "", "'"),
        ("sm train --recipe=ti", "--recipe=ti", "--recipe=", ""),
        ("sm train --recipe tiny-lora@1", "tiny-lora@1", "tiny-lora", ""),
        ('sm train --recipe="ti', "--recipe=ti", "--recipe=", '"'),
        ("A=1 sm show x", "x", "", ""),
        ("sm show ", "", "", ""),
    ],
)
def test_bash_keeps_what_precedes_its_own_word(line: str, begun: str, kept: str, quote: str) -> None:
    typed = typed_words(line, breaks="@><=;|&(:")
    assert (typed.words[0], typed.begun, typed.kept, typed.quote) == ("sm", begun, kept, quote)


def test_a_name_that_cannot_be_quoted_is_not_offered() -> None:
    assert quoted_for_bash("it's", "'") is None
    assert quoted_for_bash("wow!", '"') is None


def test_the_table_is_small() -> None:
    assert json.loads(FILE.read_text(encoding="utf-8"))["commands"]
    assert FILE.stat().st_size < 200_000
