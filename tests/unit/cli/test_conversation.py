"""`train` asks for what is missing, one question each, and for nothing that was given."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from stationmaster.cli.context import Options
from stationmaster.cli.conversation import ask_for_missing, needs_questions, path_completions
from stationmaster.cli.repeatable import train_command
from stationmaster.config import load_settings
from stationmaster.errors import UserError
from stationmaster.station.job_file import JobFile
from stationmaster.station.local.set_up_providers import SetUpProvider, set_up_providers
from stationmaster.station.local.station import LocalStation
from tests.support.commands.scripted_person import ScriptedPerson
from tests.support.jobs.local_world import write_pictures
from tests.support.jobs.spine_values import spec

HERE = SetUpProvider(name="loopback", what="this computer", costs=False)
RENTED = SetUpProvider(name="vastai", what="rented at Vast.ai", costs=True)


@pytest.fixture
def station(tmp_path: Path) -> Iterator[LocalStation]:
    environ = {"HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}
    opened = LocalStation(load_settings(environ, folder=tmp_path), environ)
    yield opened
    opened.close()


@pytest.fixture
def cats(tmp_path: Path) -> str:
    return str(write_pictures(tmp_path / "cats"))


def asked(person: ScriptedPerson) -> list[str]:
    """The first word of each question."""
    return [question.replace(",", "").split()[0] for question in person.asked]


def test_everything_that_is_missing_is_asked_for_and_enter_takes_the_defaults(station: LocalStation, cats: str) -> None:
    person = ScriptedPerson("", cats, "", "", "", "", "")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE, RENTED), default_provider="vastai")
    assert asked(person) == ["Recipe", "Dataset", "Name", "Trigger", "Steps", "Provider", "Stop"]
    assert answers == JobFile(recipe="tiny-lora@1", dataset=cats, name="cats", provider="vastai")
    assert "5  tiny-lora@1" in person.saw()
    assert "6 images, 6 captions: good to train" in person.saw()


def test_what_was_given_is_not_asked_for(station: LocalStation, cats: str) -> None:
    given = JobFile(
        recipe="tiny-lora@1", name="mine", trigger="ohwx", parameters={"steps": 5}, provider="vastai", max_spend=2
    )
    person = ScriptedPerson(cats)
    answers = ask_for_missing(given, station, person, providers=(HERE, RENTED), default_provider="loopback")
    assert asked(person) == ["Dataset"]
    assert given.overlaid(answers).request().name == "mine"


def test_answers_may_be_numbers_of_the_lists(station: LocalStation, cats: str) -> None:
    person = ScriptedPerson("5", cats, "tom", "ohwx", "20", "2", "$1.50")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE, RENTED), default_provider="loopback")
    expected = {"recipe": "tiny-lora@1", "name": "tom", "trigger": "ohwx", "steps": 20, "provider": "vastai"}
    assert {name: getattr(answers, name) for name in expected} == expected
    assert answers.max_spend == "1.50"


def test_a_recipe_without_a_trigger_is_not_asked_about_one_nor_a_free_machine_about_money(
    station: LocalStation, tmp_path: Path
) -> None:
    rows = tmp_path / "rows"
    rows.mkdir()
    (rows / "train.jsonl").write_text('{"text": "a line to learn"}\n' * 20)
    person = ScriptedPerson("llm-lora", str(rows), "", "")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE,), default_provider="loopback")
    assert "Trigger" not in asked(person)
    assert "Stop" not in asked(person)
    assert answers.provider is None


def test_a_wrong_answer_is_explained_in_one_line_and_asked_again(station: LocalStation, cats: str) -> None:
    person = ScriptedPerson("99", "tini-lora", "5", "", "/nowhere", cats, "", "", "none", "-1", "20")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE,), default_provider="loopback")
    assert (answers.steps, person.unused) == (20, [])
    assert "there is no recipe number 99 (1 to 5)" in person.saw()
    assert "there is no recipe tini-lora" in person.saw()
    assert "a dataset is needed" in person.saw()
    assert "'none' is not allowed" in person.saw()


def test_after_a_few_wrong_answers_it_gives_up_and_names_the_option(station: LocalStation) -> None:
    person = ScriptedPerson(*["nothing-like-it"] * 20)
    with pytest.raises(UserError, match="no valid answer") as problem:
        ask_for_missing(JobFile(), station, person)
    assert problem.value.hint == "pass --recipe"
    assert len(person.asked) == 5


def test_a_person_may_leave_at_any_question(station: LocalStation, cats: str) -> None:
    everything = ["", cats, "", "", "", ""]
    for count in range(len(everything)):
        with pytest.raises(typer.Abort):
            ask_for_missing(
                JobFile(),
                station,
                ScriptedPerson(*everything[:count]),
                providers=(HERE, RENTED),
                default_provider="loopback",
            )


def test_errors_of_the_dataset_are_shown_and_a_repaired_copy_is_offered(station: LocalStation, tmp_path: Path) -> None:
    folder = write_pictures(tmp_path / "cats")
    for suffix in ("png", "txt"):  # names that a repaired copy changes
        (folder / f"landscape_001.{suffix}").rename(folder / f"a\x01b.{suffix}")
    person = ScriptedPerson("", str(folder), "n", str(folder), "y", "", "", "")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE,), default_provider="loopback")
    assert answers.dataset == str(tmp_path / "cats-repaired")
    assert "  error: a\\x01b.png: " in person.saw()
    assert f"stationmaster dataset check {folder} --recipe tiny-lora@1" in person.saw()
    assert "not ready to train" in person.saw()


def test_a_dataset_that_no_copy_would_repair_is_asked_for_again(station: LocalStation, cats: str) -> None:
    folder = write_pictures(Path(cats).with_name("dogs"))
    (folder / "landscape_001.png").write_bytes(b"no picture")
    person = ScriptedPerson("", str(folder), cats, "", "", "")
    answers = ask_for_missing(JobFile(), station, person, providers=(HERE,), default_provider="loopback")
    assert answers.dataset == cats
    assert "  error: landscape_001.png: " in person.saw()
    assert not any("repaired copy" in question for question in person.asked)


def test_the_recipe_of_the_last_job_is_the_default(station: LocalStation) -> None:
    station.store.jobs.submit(spec("mine", recipe="sdxl-lora@2"))
    person = ScriptedPerson()
    with pytest.raises(typer.Abort):
        ask_for_missing(JobFile(), station, person)
    assert person.asked == ["Recipe, by number or name [sdxl-lora@2]: "]


def test_only_a_missing_recipe_or_dataset_starts_the_questions() -> None:
    assert needs_questions(JobFile(recipe="tiny-lora@1"))
    assert needs_questions(JobFile(dataset="cats"))
    assert not needs_questions(JobFile(recipe="tiny-lora@1", dataset="cats"))


def test_the_command_that_needs_no_questions_is_quoted_for_a_shell(tmp_path: Path) -> None:
    options = Options(
        as_json=False, home=tmp_path / "my home", log_level=None, server=None, environ={}, own_command=("sm",)
    )
    job = JobFile(
        recipe="tiny-lora@1",
        dataset="my cats",
        name="--odd",
        trigger="o'hwx",
        steps=20,
        parameters={"rank": "4"},
        max_spend="1.50",
    )
    command = train_command(job, options, job_file=Path("job.yaml"), watch=True, dry_run=False)
    assert shlex.split(command) == [
        "stationmaster", "--home", str(tmp_path / "my home"), "train", "job.yaml",
        "--recipe", "tiny-lora@1", "--dataset", "my cats", "--name=--odd", "--trigger", "o'hwx", "--steps", "20",
        "-p", "rank=4", "--max-spend", "1.50", "--watch",
    ]  # fmt: skip


def test_paths_are_completed(tmp_path: Path) -> None:
    (tmp_path / "cats").mkdir()
    (tmp_path / "cars.zip").touch()
    (tmp_path / ".hidden").mkdir()
    assert path_completions(f"{tmp_path}/ca") == [f"{tmp_path}/cars.zip", f"{tmp_path}/cats/"]
    assert path_completions(f"{tmp_path}/") == [f"{tmp_path}/cars.zip", f"{tmp_path}/cats/"]
    assert path_completions(f"{tmp_path}/.h") == [f"{tmp_path}/.hidden/"]
    assert path_completions(f"{tmp_path}/nowhere/x") == []


def test_providers_are_those_with_what_they_need(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "STATIONMASTER_HOME": str(tmp_path / "home")}
    assert [one.name for one in set_up_providers(load_settings(environ, folder=tmp_path))] == ["loopback"]
    environ |= {
        "VASTAI_API_KEY": "key",
        "STATIONMASTER_VASTAI__ACCOUNTS__WORK__API_KEY": "other",
        "STATIONMASTER_SSH__HOSTS": '[{"address": "tower"}]',
    }
    found = set_up_providers(load_settings(environ, folder=tmp_path))
    assert [(one.name, one.costs) for one in found] == [
        ("loopback", False),
        ("ssh", False),
        ("vastai", True),
        ("vastai:work", True),
    ]
