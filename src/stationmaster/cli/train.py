"""`stationmaster train`: check, quote, ask, submit, and watch if wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.asking import confirm_price, is_submitted
from stationmaster.cli.context import LONGEST_NAME, JsonOption, options_of, print_json, station_of
from stationmaster.cli.fetching import fetch_first
from stationmaster.cli.helping_worker import prepare_worker, worker_for
from stationmaster.cli.recipe_options import given_parameters

if TYPE_CHECKING:
    from stationmaster.datasets.sources.reference import Source
    from stationmaster.station.local.station import LocalStation
    from stationmaster.station.proposals import Accepted, TrainRequest

_FILE_KEYS = {
    "recipe", "tool", "dataset", "name", "trigger", "steps", "parameters", "provider", "driver", "account", "id",
    "owner", "max_price", "max_hours", "max_spend", "monitoring", "execution",
}  # fmt: skip


def train(
    context: typer.Context,
    job_file: Annotated[
        Path | None, typer.Argument(metavar="[JOB.yaml]", help="A file with these options.", show_default=False)
    ] = None,
    recipe: Annotated[str | None, typer.Option("--recipe", "--tool", help="As in tiny-lora@1.")] = None,
    dataset: Annotated[
        str | None,
        typer.Option(metavar="SOURCE", help="Folder, .tar or .zip file, s3://BUCKET/PREFIX, hf://datasets/OWNER/NAME."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the model is called.")] = None,
    trigger: Annotated[str | None, typer.Option(help="The word that calls the trained subject.")] = None,
    steps: Annotated[int | None, typer.Option(help="How many steps to train.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A recipe's parameter; also --NAME VALUE."),
    ] = None,
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Where to run it.")] = None,
    account: Annotated[str | None, typer.Option(help="Which of the provider's accounts.")] = None,
    job_id: Annotated[str | None, typer.Option("--id", help="The job's id; the same id again changes nothing.")] = None,
    owner: Annotated[str | None, typer.Option(help="Who is told of it; see `users`. By default you.")] = None,
    max_price: Annotated[str | None, typer.Option(help="The most that an hour may cost, in dollars.")] = None,
    max_hours: Annotated[float | None, typer.Option(help="After so long it is ended, the model saved.")] = None,
    max_spend: Annotated[str | None, typer.Option(help="The most that the job may cost, in dollars.")] = None,
    watch: Annotated[bool, typer.Option("--watch", help="Stay and show it live.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the commands that would run; rent nothing.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a model: the price is shown and asked for before anything is rented.

    Examples:

      stationmaster train --recipe tiny-lora@1 --dataset ./cats --name cats --trigger ohwx --watch

      stationmaster train job.yaml --dry-run

    A recipe's parameters are options too: `stationmaster train --recipe tiny-lora@1 --help` shows them.
    """
    options = options_of(context)
    given = _given(
        job_file,
        {
            "recipe": recipe, "dataset": dataset, "name": name, "trigger": trigger, "steps": steps,
            "provider": provider, "account": account, "id": job_id, "owner": owner, "max_price": max_price,
            "max_hours": max_hours, "max_spend": max_spend,
            "parameters": {**given_parameters(context), **pairs(parameter or [])},
        },
    )  # fmt: skip
    request = request_of(given)
    as_json = as_json or options.as_json
    fetch_first(request.dataset, options.settings)
    with station_of(context) as station:
        if dry_run:
            return _show_plan(station.proposals.check(request), as_json=as_json)
        started = False
        notes: tuple[str, ...] = ()
        if not is_submitted(station, request.id):
            station.require_key(request.provider, request.account)
            preview = station.proposals.check(request)
            notes = preview.notes
            if not as_json:
                _show_quote(preview)
            confirm_price(preview.quote, yes=yes)
            started = prepare_worker(context, station)
        accepted = station.submit(request)
        _announce(context, station, accepted, started=started, as_json=as_json)
        if watch:
            from stationmaster.cli.live import follow

            raise typer.Exit(follow(station, accepted.job.id, as_json=as_json, notes=notes))
        if as_json:
            from stationmaster.cli.render import job_json

            print_json({**job_json(station.jobs.view(accepted.job.id)), "notes": list(notes)})
    return None


def request_of(given: dict[str, Any]) -> TrainRequest:
    """A request from named values, typed and checked as far as that goes without looking at anything else."""
    from stationmaster.errors import UserError
    from stationmaster.station.proposals import TrainRequest

    if not given.get("recipe"):
        raise UserError("no recipe was given", hint="add --recipe; `stationmaster recipes list` shows them")
    if not given.get("dataset"):
        raise UserError("no dataset was given", hint="add --dataset FOLDER")
    for key in ("name", "trigger", "id", "owner", "account", "provider"):
        if len(given.get(key) or "") > LONGEST_NAME:
            raise UserError(f"{key} is longer than {LONGEST_NAME} characters", hint="choose a shorter one")
    parameters = dict(given.get("parameters") or {})
    if given.get("steps") is not None:
        parameters["steps"] = given["steps"]
    return TrainRequest(
        recipe=str(given["recipe"]),
        dataset=_source(given["dataset"]),
        name=given.get("name"),
        trigger=given.get("trigger"),
        parameters=parameters,
        provider=_PROVIDER_ALIASES.get(str(given.get("provider")), given.get("provider")),
        account=given.get("account"),
        id=given.get("id"),
        owner=given.get("owner"),
        max_price=money("max_price", given.get("max_price")),
        max_hours=_hours(given.get("max_hours")),
        max_spend=money("max_spend", given.get("max_spend")),
        monitoring=given.get("monitoring") or {},
    )


_PROVIDER_ALIASES = {"local": "ssh"}
_KINDS = {
    "recipe": str, "name": str, "trigger": str, "id": str, "owner": str, "provider": str, "account": str,
    "dataset": str,     "parameters": dict, "monitoring": dict,
}  # fmt: skip


def _source(value: Any) -> Source:
    from stationmaster.datasets.sources.reference import parse_source

    return value if isinstance(value, Path) else parse_source(str(value))


def _given(job_file: Path | None, flags: dict[str, Any]) -> dict[str, Any]:
    """The file's values with the flags laid over them; parameters are merged."""
    from_file = {} if job_file is None else _read_job_file(job_file)
    merged = {**from_file, **{key: value for key, value in flags.items() if value not in (None, {})}}
    merged["parameters"] = {**(from_file.get("parameters") or {}), **flags["parameters"]}
    return merged


def _read_job_file(path: Path) -> dict[str, Any]:
    import difflib

    from stationmaster.cli.seed_names import with_trainer_monitoring
    from stationmaster.errors import NotFound, UserError
    from stationmaster.settings.documents import read_yaml

    try:
        data = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path}", hint="name a file with the job's options, or give them here"
        ) from None
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint="name a file that you may read") from None
    except ValueError as problem:
        raise UserError(f"{path} cannot be read: {problem}", hint="it must be YAML in UTF-8") from None
    if not isinstance(data, dict):
        raise UserError(f"{path} must hold options by name", hint="for example: recipe: tiny-lora@1")
    data = with_trainer_monitoring(data, path)
    for key in data:
        if key not in _FILE_KEYS:
            near = difflib.get_close_matches(str(key), sorted(_FILE_KEYS), n=1)
            raise UserError(f"{path}: {key} is not an option", hint=f"did you mean {near[0]}?" if near else None)
    for ours, theirs in (("recipe", "tool"), ("provider", "driver")):
        if theirs in data:
            data[ours] = data.pop(theirs)
    if (execution := data.pop("execution", None)) is not None:
        if not isinstance(execution, dict) or execution.keys() != {"provider"}:
            raise UserError(f"{path}: execution must hold a provider alone", hint="as in execution: {provider: vastai}")
        data.setdefault("provider", execution["provider"])
    for key, kind in _KINDS.items():
        if data.get(key) is not None and not isinstance(data[key], kind):
            if kind is dict:
                raise UserError(f"{path}: {key} must be a table of names and values", hint=f"as in {key}: {{name: 1}}")
            raise UserError(f"{path}: {key} must be text", hint=f'write it in quotes, as in {key}: "x"')
    _require_text(path, data)
    if data.get("dataset"):
        source = _source(data["dataset"])
        data["dataset"] = path.parent / source if isinstance(source, Path) else str(source)
    return data


def _require_text(path: Path, data: dict[str, Any]) -> None:
    """Names that are text, and text that can be stored."""
    from stationmaster.errors import UserError
    from stationmaster.settings.addresses import checked_text
    from stationmaster.settings.documents import texts_in

    for name in data.get("parameters") or {}:
        if not isinstance(name, str):
            raise UserError(f"{path}: parameters: {name!r} is not a name", hint="`recipes show` lists a recipe's own")
    for place, text in texts_in(data):
        try:
            checked_text(text)
        except ValueError as problem:
            raise UserError(f"{path}: {place} {problem}", hint="take them out; it must be YAML in UTF-8") from None


def pairs(words: list[str]) -> dict[str, str]:
    from stationmaster.errors import UserError

    pairs = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"{word!r} is not NAME=VALUE", hint="write it as -p rank=16")
        pairs[name] = value
    return pairs


def money(name: str, value: Any) -> Any:
    from stationmaster.errors import UserError
    from stationmaster.money import from_dollars

    if value is None:
        return None
    try:
        amount = from_dollars(value)
    except ValueError as problem:
        raise UserError(f"{name}: {problem}", hint="write dollars, as in 1.50") from None
    if amount <= 0:
        raise UserError(f"{name} must be above zero", hint="write dollars, as in 1.50; leave it out for no limit")
    return amount


def _hours(value: Any) -> float | None:
    from stationmaster.errors import UserError

    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 10_000:
        raise UserError(f"max_hours: {value!r} is not a number of hours", hint="write hours, as in 1.5")
    return float(value)


def _show_plan(preview: Preview, *, as_json: bool) -> None:
    import shlex

    if as_json:
        from stationmaster.cli.render import preview_json

        return print_json(preview_json(preview))
    _show_quote(preview)
    for step in preview.steps:
        typer.echo(f"\n# {step.name}")
        words = [f"{name}={shlex.quote(value)}" for name, value in step.env.items()]
        typer.echo(" ".join([*words, shlex.join(step.argv)]))
    return None


def _show_quote(preview: Preview) -> None:
    from stationmaster.cli.render import quote_lines

    for line in quote_lines(preview):
        typer.echo(line)


def _announce(
    context: typer.Context, station: LocalStation, accepted: Accepted, *, started: bool, as_json: bool
) -> None:
    worker, is_started_now = worker_for(context, station)
    if as_json:
        return
    job_id = accepted.job.id
    typer.echo(f"job {job_id} {'submitted' if accepted.created else 'was there already; nothing was changed'}")
    if started or is_started_now:
        typer.echo(f"worker started in the background (pid {worker.pid}, log {worker.log})")
    typer.echo(f"follow it: stationmaster watch {job_id}")
