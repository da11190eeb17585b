"""Names on the command line: a job by id, beginning of its id or name in every command, and what a wrong name means."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from stationmaster.cli.completion.table import ENDED_JOB, JOB, JOB_OR_FILE, RUNNING_JOB, Word, read_table
from stationmaster.model import Outcome, Reason, State, User
from tests.support.commands.cli_runs import Home, without_ages
from tests.support.jobs.spine_values import spec
from tests.support.jobs.stored_jobs import change_row

_KINDS = {JOB, RUNNING_JOB, ENDED_JOB, JOB_OR_FILE}
_MORE = {"retry": ("--dry-run",), "credits refund": ("1", "--reason", "x"), "watch": ("--once",)}


def _taking_jobs(word: Word, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words before the job, of every command that takes one."""
    for value in word.arguments[:1]:
        if value.kind in _KINDS:
            yield path
    for flag in word.flags:
        if flag.value is not None and flag.value.kind in _KINDS:
            yield (*path, flag.names[0])
    for name, inner in word.commands.items():
        yield from _taking_jobs(inner, (*path, name))


COMMANDS = sorted(_taking_jobs(read_table()))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    with Home(tmp_path_factory.mktemp("names")) as home:
        home.path.mkdir()
        home.environ["STATIONMASTER_BILLING__ENABLED"] = "true"
        home.environ["STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY"] = "none"
        for job_id, name in (("aa11", "cats"), ("ab22", "cats"), ("bc33", "dogs")):
            home.store.jobs.submit(spec(job_id, name=name))
            ended = {"state": State.ENDED.value, "outcome": Outcome.FAILED.value, "reason": Reason.STEP_FAILED.value}
            change_row(home.store, job_id, **ended, ended_at=home.store.now(), due_at=None)
        home.store.users.add(User(name="hannah"))
        yield home


def test_all_commands_for_jobs_are_tried() -> None:
    assert len(COMMANDS) >= 15


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_job_is_named_the_same_way_everywhere(filled: Home, command: tuple[str, ...]) -> None:
    def ran(job: str) -> tuple[int, str, str]:
        second = ("bc33",) if command == ("compare",) else ()
        done = filled.run(*command, job, *second, *_MORE.get(" ".join(command), ()))
        return done.code, without_ages(done.out), done.err

    newest = ran("ab22")
    assert newest[2].find("there is no job") < 0, newest
    assert ran("ab2") == newest  # the beginning of its id
    assert ran("cats") == newest  # of several with this name the newest
    code, _, said = ran("a")
    assert (code, "matches the ids of 2 jobs" in said) == (6, True), said
    assert "ab22 (cats), aa11 (cats)" in said
    code, _, said = ran("cast")
    assert (code, said.splitlines()) == (6, ["error: there is no job cast", "hint: did you mean `cats`?"])


@pytest.mark.parametrize(
    ("line", "code", "error", "hint"),
    [
        ("jbos", 2, "no such command 'jbos'", "did you mean `stationmaster jobs`?"),
        ("users shwo hannah", 2, "no such command 'shwo'", "did you mean `stationmaster users show`?"),
        ("jobs --al", 2, "no such option --al", "did you mean `--all`? `stationmaster jobs -h` lists all"),
        (
            "estimate tiny-lora@1 --images 9 --save-evry 3",
            2,
            "no such option --save-evry",
            "did you mean `--save-every`? `stationmaster estimate -h` lists all",
        ),
        ("jobs --log-level WARN", 2, "--log-level: WARN is not a level", "did you mean `WARNING`?"),
        ("recipes show tiny-lra@1", 6, "there is no recipe tiny-lra@1", "did you mean `tiny-lora@1`?"),
        ("recipes show Tiny-Lora@1", 6, "'Tiny-Lora@1' is not a recipe name", "did you mean `tiny-lora@1`?"),
        ("recipes show tiny-lora@7", 6, "there is no recipe tiny-lora@7", "use tiny-lora@1"),
        (
            "estimate tiny-lora@1 --images 9 -p stesp=3",
            2,
            "tiny-lora@1 has no parameter `stesp`",
            "did you mean `steps`?",
        ),
        ("users show hanna", 6, "there is no user hanna", "did you mean `hannah`?"),
        ("users rm hanna", 6, "there is no user hanna", "did you mean `hannah`?"),
        ("notify inbox --user hanna", 6, "there is no user hanna", "did you mean `hannah`?"),
        ("tokens create x --user hanna", 6, "there is no user hanna", "did you mean `hannah`?"),
        ("credits show hanna", 6, "there is no user hanna", "did you mean `hannah`?"),
        ("offers --provider vastia", 3, "there is no provider vastia", "did you mean `vastai`?"),
        (
            "offers --provider vastai --account wrok",
            3,
            "Vast.ai has no account wrok here",
            "did you mean `--account work`?",
        ),
    ],
)
def test_a_wrong_name_is_one_line_and_the_right_one(filled: Home, line: str, code: int, error: str, hint: str) -> None:
    ran = filled.run(*line.split())
    assert (ran.code, ran.err.splitlines()) == (code, [f"error: {error}", f"hint: {hint}"])
