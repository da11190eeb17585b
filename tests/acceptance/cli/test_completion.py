"""`stationmaster completion`, and TAB in real shells: bash, zsh and fish in a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.capabilities import require
from tests.support.commands.cli_runs import Home
from tests.support.jobs.stored_jobs import put_trained
from tests.support.terminal.shells import SHELLS, Shell, opened_shell

TRAP = 'it\'s $(touch pwned) `touch pwned` "x"; touch pwned'


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with Home(tmp_path_factory.mktemp("completed")) as home:
        home.path.mkdir()
        for job_id, name in (("aa11", "cats"), ("bb22", "my käse!"), ("cc33", TRAP), ("dd44", "~root")):
            put_trained(home.store, job_id, name=name)
        (home.folder / "pictures").mkdir()
        yield home


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest, filled: Home) -> Iterator[Shell]:
    with opened_shell(request.param, filled.folder, filled.environ) as opened:
        yield opened


def test_tab_lists_what_fits(shell: Shell) -> None:
    commands = shell.offers("stationmaster tr", "train", "trust")
    assert ("confirm the price" in commands) == (shell.name != "bash")  # bash shows no descriptions
    shell.offers("stationmaster train --recipe tiny-lora@1 --sa", "--save-every", "--sample-every")
    shown = shell.offers("stationmaster show ", "cats", "root")
    assert ("aa11" in shown) == (shell.name != "bash")


@pytest.mark.parametrize(
    ("line", "shown", "expected"),
    [
        ("stationmaster show ca", "cats", ["show", "cats"]),
        ("stationmaster show aa", "aa11", ["show", "aa11"]),
        ("stationmaster train --recipe=tiny", "lora@1", ["train", "--recipe=tiny-lora@1"]),
        ("stationmaster train --recipe tiny-lora@", "lora@1", ["train", "--recipe", "tiny-lora@1"]),
        ("stationmaster show my", "se", ["show", "my käse!"]),
        ("stationmaster show it", "touch", ["show", TRAP]),
        ('stationmaster show "it', "touch", ["show", TRAP]),
        ("stationmaster show \\~", "root", ["show", "~root"]),
    ],
)
def test_a_completed_word_is_what_the_command_gets(
    shell: Shell, filled: Home, line: str, shown: str, expected: list[str]
) -> None:
    assert shell.arguments(line, shown) == expected
    assert not (filled.folder / "pwned").exists()


def test_paths_are_completed_by_the_shell(shell: Shell) -> None:
    assert shell.arguments("stationmaster train --dataset pic", "pictures")[-1].rstrip("/") == "pictures"
    assert shell.arguments("stationmaster pull cats pic", "pictures")[-1].rstrip("/") == "pictures"


@pytest.mark.parametrize("name", SHELLS)
def test_an_installed_completion_works_in_a_new_shell(name: str, home: Home) -> None:
    require("bash-completion")
    home.environ["SHELL"] = f"/usr/bin/{name}"
    ran = home.run("completion", "--install")
    assert ran.code == 0, ran.err
    path, *steps = ran.out.splitlines()
    assert Path(path).is_relative_to(home.folder)
    added = [line.strip() for line in steps if line.startswith("  ")]
    assert (len(added) == 2) == (name == "zsh")
    if name == "zsh":
        (home.folder / ".zshrc").write_text("\n".join(added).replace("compinit && compinit", "compinit && compinit -u"))
        assert not [line for line in home.run("completion", "--install").out.splitlines() if line.startswith("  ")]
    # The package bash-completion reads the file on first use; rc files of the system load the package.
    setup = "source /usr/share/bash-completion/bash_completion" if name == "bash" else "true"
    with opened_shell(name, home.folder, home.environ, rc_files=True, setup=setup) as shell:
        assert shell.arguments("stationmaster doc", "doctor") == ["doctor"]
    assert not home.path.exists()


def test_the_shell_is_named_or_known(home: Home) -> None:
    assert home.run("completion", SHELL="/bin/zsh").out.startswith("#compdef stationmaster")
    assert "complete -c stationmaster" in home.run("completion", "fish").out
    wrong = home.run("completion", "fsh")
    assert (wrong.code, wrong.err) == (
        2,
        "error: there is no completion for fsh\nhint: did you mean `stationmaster completion fish`?\n",
    )
    unset = home.run("completion", SHELL="")
    assert (unset.code, unset.err.splitlines()[1]) == (
        2,
        "hint: name the shell: stationmaster completion bash|zsh|fish",
    )
    assert home.run("completion", SHELL="/bin/tcsh").code == 2
    assert not home.path.exists()
