"""Names of jobs, recipes, models and users for completion, read only when a line asks for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stationmaster.cli.completion import table
from stationmaster.cli.completion.line import Asked, Candidate
from stationmaster.cli.completion.table import Flag, Value

if TYPE_CHECKING:
    from stationmaster.station.local.known_names import KnownJob, KnownNames

_RECIPE, _JOB_FILE = f"<{table.RECIPE}>", f"<{table.FILE_PATH}>"


class Names:
    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._given: Mapping[str, str] = {}

    def of(self, question: Asked) -> list[Candidate]:
        """What the value that the line asks for can be."""
        assert question.value is not None
        self._given = question.given
        offered = _OFFERED.get(question.value.kind)
        return [] if offered is None else list(offered(self, question))

    def recipe_flags(self, given: Mapping[str, str]) -> Sequence[Flag]:
        """The parameters of the recipe that the line names, as options."""
        self._given = given
        found = []
        for name, about in self._parameters().items():
            option = name.replace("_", "-")
            is_switch = about.get("type") == "bool"
            choices = tuple(str(each) for each in about.get("choices") or ())
            found.append(
                Flag(
                    names=(f"--{option}", f"--no-{option}") if is_switch else (f"--{option}",),
                    help=str(about.get("help") or ""),
                    value=None if is_switch else Value(choices=choices),
                )
            )
        return found

    def jobs(self, question: Asked) -> Iterator[Candidate]:
        """Names, the newest job of each; ids where one was begun, and of jobs whose name does not lead to them."""
        kind = question.value.kind if question.value is not None else ""
        named: set[str] = set()
        for job in self._known.jobs():
            is_first = job.name not in named
            named.add(job.name)
            if (kind == table.RUNNING_JOB and job.ended) or (kind == table.ENDED_JOB and not job.ended):
                continue
            if {job.name, job.id} & set(question.already):
                continue
            if is_first and _is_plain(job.name):
                yield Candidate(value=job.name, help=f"{job.id}, {_state(job)}")
                if question.begun and job.id.startswith(question.begun):
                    yield Candidate(value=job.id, help=f"{job.name}, {_state(job)}")
            else:
                yield Candidate(value=job.id, help=f"{job.name}, {_state(job)}")

    def recipes(self, _question: Asked) -> Iterator[Candidate]:
        from stationmaster.recipes.texts import recipe_texts  # reads YAML, which most lines do not need

        for recipe in recipe_texts(self._recipe_folders()):
            yield Candidate(value=recipe.reference, help=recipe.title)

    def recipe_parameters(self, question: Asked) -> Iterator[Candidate]:
        """`rank=`, and after it the values that it can have."""
        name, equals, _ = question.begun.partition("=")
        for known, about in self._parameters().items():
            if not equals:
                yield Candidate(value=f"{known}=", help=str(about.get("help") or ""))
            elif known == name:
                choices = about.get("choices") or (("true", "false") if about.get("type") == "bool" else ())
                yield from (Candidate(value=f"{known}={each}") for each in choices)

    def models(self, _question: Asked) -> Iterator[Candidate]:
        return (Candidate(value=slug, help=name) for slug, name in self._known.models())

    def users(self, _question: Asked) -> Iterator[Candidate]:
        return (Candidate(value=each) for each in self._known.users())

    def providers(self, _question: Asked) -> Iterator[Candidate]:
        return (Candidate(value=each) for each in self._known.providers())

    def accounts(self, _question: Asked) -> Iterator[Candidate]:
        return (Candidate(value=each) for each in self._known.accounts())

    @cached_property
    def _known(self) -> KnownNames:
        from stationmaster.station.local.known_names import known_names  # settings: slow, and most lines need none

        home = self._given.get("--home")
        return known_names(self._environ, home=Path(home).expanduser() if home else None, server=self._server())

    def _server(self) -> str | None:
        return self._given.get("--server")

    def _recipe_folders(self) -> Sequence[Path]:
        return self._known.recipe_folders()

    def _parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """The parameters of the recipe that the line names, or that its job file does."""
        reference = self._given.get(_RECIPE)
        if reference is None and (job_file := self._given.get(_JOB_FILE)):
            reference = _recipe_in(Path(job_file).expanduser())
        if reference is None:
            return {}
        from stationmaster.recipes.texts import find_recipe_text, parameters_in  # as above

        recipe = find_recipe_text(reference, self._recipe_folders())
        return {} if recipe is None else parameters_in(recipe)


_OFFERED: Mapping[str, Callable[[Names, Asked], Iterator[Candidate]]] = {
    table.JOB: Names.jobs,
    table.RUNNING_JOB: Names.jobs,
    table.ENDED_JOB: Names.jobs,
    table.JOB_OR_FILE: Names.jobs,
    table.RECIPE: Names.recipes,
    table.RECIPE_PARAMETER: Names.recipe_parameters,
    table.MODEL: Names.models,
    table.USER: Names.users,
    table.PROVIDER: Names.providers,
    table.ACCOUNT: Names.accounts,
}


def _state(job: KnownJob) -> str:
    return f"{job.state.lower().replace('_', ' ')}"


def _is_plain(name: str) -> bool:
    """Whether the name can stand on a command line: a leading dash would make it an option."""
    from stationmaster.printable import one_line

    return not name.startswith("-") and bool(name.strip()) and one_line(name) == name


def _recipe_in(job_file: Path) -> str | None:
    from stationmaster.documents import read_document

    if job_file.suffix not in (".yaml", ".yml"):
        return None
    data = read_document(job_file.read_text(encoding="utf-8"), is_json=False).data
    return str(data.get("recipe") or data.get("tool") or "") or None if isinstance(data, dict) else None
