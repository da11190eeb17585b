"""`train` as a conversation: asks for what the command line and the job file leave out, one question each."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.person import Completions, Person, ask_until_valid, ask_yes_or_no
from stationmaster.cli.table import Column
from stationmaster.errors import DatasetInvalid, StationmasterError, UserError
from stationmaster.model import ADOPTED_RECIPE
from stationmaster.recipes.parameters import resolve
from stationmaster.station.datasets import DatasetReport, DatasetRules, parse_reference, shown
from stationmaster.station.job_file import JobFile, invalid_as_user_error, price
from stationmaster.station.local.proposing.naming import checked_name

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Recipe
    from stationmaster.station.base import Station
    from stationmaster.station.local.set_up_providers import SetUpProvider

_FIRST_RECIPE = "tiny-lora@1"
_SHOWN_ERRORS = 2


def needs_questions(job: JobFile) -> bool:
    """Whether a value is missing without which nothing can be trained."""
    return not (job.recipe and job.dataset)


def ask_for_missing(
    job: JobFile,
    station: Station,
    person: Person,
    *,
    providers: Sequence[SetUpProvider] = (),
    default_provider: str = "",
) -> JobFile:
    """Everything that the job leaves out, as the person answers.

    `providers` are those to choose from; none: they are not known here, and a server chooses. Raises typer.Abort or
    Exit if the person leaves, UserError if no answer is valid.
    """
    person.tell("Enter takes the value in brackets; Ctrl-C aborts.")
    recipe = station.recipes.find(job.recipe) if job.recipe else _ask_recipe(station, person)
    dataset = job.dataset or _ask_dataset(station, person, recipe.reference, trigger=job.trigger)
    answers: dict[str, Any] = {"recipe": recipe.reference, "dataset": dataset}
    if not job.name:
        answers["name"] = _ask_name(person, default=parse_reference(dataset).name or recipe.name)
    if not job.trigger and _uses_trigger(recipe):
        answers["trigger"] = _ask_trigger(person)
    if job.steps is None and "steps" not in (job.parameters or {}) and "steps" in recipe.parameters:
        answers["steps"] = _ask_steps(person, recipe)
    provider = job.provider or (job.execution.provider if job.execution else None)
    if provider is None and len(providers) > 1:
        provider = answers["provider"] = _ask_provider(person, providers, default_provider)
    if job.max_spend is None and _may_cost(provider or default_provider, providers):
        answers["max_spend"] = _ask_max_spend(person)
    with invalid_as_user_error():
        return JobFile(**answers)


def _ask_recipe(station: Station, person: Person) -> Recipe:
    recipes = station.recipes.listed().recipes
    default = _default_recipe(station)
    columns = [Column("#", right=True), Column("RECIPE"), Column("WHAT IT TRAINS", shrinks_to=20)]
    rows = [(str(number), one.reference, _sentence(one)) for number, one in enumerate(recipes, 1)]
    person.show_table(columns, rows)

    def read(answer: str) -> Recipe:
        picked = _numbered(answer or default, [one.reference for one in recipes], what="recipe")
        return station.recipes.find(picked)

    names = [one.reference for one in recipes]
    return ask_until_valid(
        person, f"Recipe, by number or name [{default}]: ", read, option="--recipe", completions=_beginning(names)
    )


def _default_recipe(station: Station) -> str:
    """The recipe of the newest job, if it can still be used."""
    for job in station.jobs.listed(with_ended=True, limit=10):
        if job.spec.recipe == ADOPTED_RECIPE:
            continue
        try:
            return station.recipes.find(job.spec.recipe).reference
        except StationmasterError:
            break
    return _FIRST_RECIPE


def _sentence(recipe: Recipe) -> str:
    """What it trains: the first sentence of its description, without the word that the column's title says."""
    first, _, _ = " ".join(recipe.description.split()).partition(". ")
    what = first.rstrip(".").removeprefix("Trains ")
    return what[:1].upper() + what[1:]


def _numbered(answer: str, names: Sequence[str], *, what: str) -> str:
    """The name that a number stands for; any other answer is a name already. Raises UserError.

    >>> _numbered("2", ["flux-lora@2", "tiny-lora@1"], what="recipe")
    'tiny-lora@1'
    """
    if not answer.isdecimal():
        return answer
    if not 1 <= int(answer[:9]) <= len(names):
        raise UserError(f"there is no {what} number {answer}", hint=f"1 to {len(names)}")
    return names[int(answer) - 1]


def _ask_dataset(station: Station, person: Person, recipe: str, *, trigger: str | None) -> str:
    rules = station.datasets.rules_of(recipe, trigger=trigger)

    def read(answer: str) -> str:
        if not answer:
            raise UserError("a dataset is needed", hint="a folder, a .tar or .zip file, s3://… or hf://…")
        source = parse_reference(answer)
        if not isinstance(source, Path):
            return answer  # downloaded and checked before the price is shown
        source = _expanded(source)
        report = station.datasets.check(source, rules)
        if report.is_trainable:
            person.tell(f"  {_contents(report)}: good to train")
            return str(source)
        return str(_repaired(station, person, source, report, rules, recipe))

    question = "Dataset (folder, .tar, .zip, s3://…, hf://…): "
    return ask_until_valid(person, question, read, option="--dataset", completions=path_completions)


def _repaired(
    station: Station, person: Person, source: Path, report: DatasetReport, rules: DatasetRules, recipe: str
) -> Path:
    """A repaired copy, if the person wants one and it can be trained on. Raises DatasetInvalid."""
    for line in _errors(report):
        person.tell(f"  {line}")
    person.tell(f"  all problems: stationmaster dataset check {shlex.quote(str(source))} --recipe {recipe}")
    if not any("--fix" in problem.fix for problem in report.errors):
        raise DatasetInvalid("not ready to train", hint="repair it, or choose another dataset")
    target = _new_folder(source)
    question = f"Write a repaired copy to {shown(str(target))} and use that?"
    if not ask_yes_or_no(person, question, default=False, option="--dataset"):
        raise DatasetInvalid("not ready to train", hint="repair it, or choose another dataset")
    with as_the_person():
        copy = station.datasets.repair(source, target, rules)
    if copy.is_trainable:
        person.tell(f"  {_contents(copy)}: good to train")
        return target
    for line in _errors(copy):
        person.tell(f"  {line}")
    raise DatasetInvalid("the copy is not ready to train either", hint=f"repair {shown(str(target))} by hand")


def _errors(report: DatasetReport) -> Iterator[str]:
    for problem in report.errors[:_SHOWN_ERRORS]:
        yield f"error: {shown(problem.path)}: {problem.message}" if problem.path else f"error: {problem.message}"
    if (more := len(report.errors) - _SHOWN_ERRORS) > 0:
        yield f"and {more} more error{'' if more == 1 else 's'}"


def _contents(report: DatasetReport) -> str:
    counted = [(report.rows, "row")] if report.rows else [(report.images, "image"), (report.captions, "caption")]
    counted += [(len(report.warnings), "warning")] if report.warnings else []
    return ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for count, noun in counted)


def _new_folder(source: Path) -> Path:
    """A name beside the dataset that is not taken."""
    plain = source.with_suffix("") if source.is_file() else source
    first = plain.with_name(f"{plain.resolve().name}-repaired") if plain.name else Path("repaired")
    further = (first.with_name(f"{first.name}-{number}") for number in range(2, 1000))
    return first if not first.exists() else next(one for one in further if not one.exists())


def _ask_name(person: Person, *, default: str) -> str:
    return ask_until_valid(
        person, f"Name of the model [{default}]: ", lambda answer: checked_name(answer or default), option="--name"
    )


def _uses_trigger(recipe: Recipe) -> bool:
    return "job.trigger" in recipe.model_dump_json()


def _ask_trigger(person: Person) -> str | None:
    def read(answer: str) -> str | None:
        with invalid_as_user_error():
            return JobFile(trigger=answer or None).trigger

    question = "Trigger word, which stands for the subject in prompts [none]: "
    return ask_until_valid(person, question, read, option="--trigger")


def _ask_steps(person: Person, recipe: Recipe) -> Any:
    default = recipe.parameters["steps"].default

    def read(answer: str) -> Any:
        return resolve(recipe, {"steps": answer})["steps"] if answer else None

    return ask_until_valid(person, f"Steps to train [{default}]: ", read, option="--steps")


def _ask_provider(person: Person, providers: Sequence[SetUpProvider], default: str) -> str:
    names = [one.name for one in providers]
    default = default if default in names else names[0]
    columns = [Column("#", right=True), Column("PROVIDER"), Column("MACHINES", shrinks_to=20)]
    person.show_table(columns, [(str(number), one.name, one.what) for number, one in enumerate(providers, 1)])

    def read(answer: str) -> str:
        picked = _numbered(answer or default, names, what="provider")
        if picked not in names:
            raise UserError(f"there is no provider {picked} here", hint=f"one of: {', '.join(names)}")
        return picked

    return ask_until_valid(person, f"Provider [{default}]: ", read, option="--provider", completions=_beginning(names))


def _may_cost(provider: str, providers: Sequence[SetUpProvider]) -> bool:
    """Whether money may be spent; of a server that is not known."""
    return not providers or any(one.costs for one in providers if one.name == provider)


def _ask_max_spend(person: Person) -> str | None:
    def read(answer: str) -> str | None:
        given = answer.removeprefix("$").strip()
        price("the limit", given or None)
        return given or None

    question = "Stop when it has cost this many dollars [twice the high estimate]: "
    return ask_until_valid(person, question, read, option="--max-spend")


def _beginning(names: Sequence[str]) -> Completions:
    return lambda text: [name for name in names if name.startswith(text)]


def _expanded(path: Path) -> Path:
    try:
        return path.expanduser()
    except RuntimeError:  # there is no such user: then the name starts with a tilde
        return path


def path_completions(text: str) -> list[str]:
    """The paths that the text is the beginning of; folders end with a slash."""
    typed = _expanded(Path(text))
    folder, beginning = (typed, "") if text.endswith("/") or not text else (typed.parent, typed.name)
    lead = text[: len(text) - len(beginning)]
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        f"{lead}{one.name}{'/' if one.is_dir() else ''}"
        for one in found
        if one.name.startswith(beginning) and (beginning.startswith(".") or not one.name.startswith("."))
    ]
