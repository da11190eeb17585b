"""The description of a job: a YAML file, the options of a command, or the body of a request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, StrictStr, ValidationError, WithJsonSchema, field_validator, model_validator

from stationmaster.datasets.sources.reference import parse_reference
from stationmaster.documents import read_yaml
from stationmaster.errors import NotFound, UserError
from stationmaster.model import MachineWish
from stationmaster.money import MicroDollars, exact_dollars, from_dollars
from stationmaster.near_names import did_you_mean
from stationmaster.settings import provider_named
from stationmaster.settings.addresses import checked_text, texts_in
from stationmaster.station import LONGEST_NAME
from stationmaster.station.proposals import TrainRequest
from stationmaster.station.trainer_config import with_trainer_monitoring
from stationmaster.station.wire.document import RequestDocument

_OTHER_NAMES = {"tool": "recipe", "driver": "provider"}
_MOST_HOURS = 10_000
_MOST_LEVELS = 20

_HOURS_SCHEMA = {
    "anyOf": [{"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": _MOST_HOURS}, {"type": "null"}]
}

Name = Annotated[StrictStr, Field(max_length=LONGEST_NAME)]
Dollars = str | int | float


class Execution(RequestDocument):
    """The provider, as `execution.provider`."""

    provider: Name


class AskedMachine(RequestDocument):
    """What to ask of the machine beyond what the recipe needs; it lowers nothing."""

    gpus: int | None = Field(default=None, ge=0, le=64, examples=[2])
    """Number of GPUs. More than the recipe needs only where it has a `launcher`."""
    vram_gib: float | None = Field(default=None, gt=0, le=10_000, allow_inf_nan=False, examples=[48])
    """Memory that each GPU is sold with, in GiB."""
    disk_gib: float | None = Field(default=None, gt=0, le=1_000_000, allow_inf_nan=False, examples=[120])

    @classmethod
    def of(cls, wish: MachineWish) -> Self | None:
        asked = cls(gpus=wish.gpus, vram_gib=wish.vram_gib, disk_gib=wish.disk_gib)
        return None if asked == cls() else asked

    def value(self) -> MachineWish:
        return MachineWish(gpus=self.gpus, vram_gib=self.vram_gib, disk_gib=self.disk_gib)


class JobFile(RequestDocument):
    """A training to run. Every value is optional here: the command line can add what a file leaves out."""

    model_config = ConfigDict(
        ser_json_inf_nan="strings",  # a number that is not one must be refused, not left out
        json_schema_extra={
            "examples": [
                {
                    "recipe": "flux-lora@2",
                    "dataset": "upload:5f0c1d9a2b7e4c68",
                    "name": "cats",
                    "trigger": "ohwx",
                    "parameters": {"steps": 2000},
                    "max_price": 0.6,
                    "max_spend": 5,
                }
            ]
        },
    )

    recipe: Name | None = Field(default=None, examples=["flux-lora@2"])
    """The recipe, as `name@version` or `name` for its newest version. Required; `tool` is another name for it."""
    dataset: StrictStr | None = Field(default=None, examples=["upload:5f0c1d9a2b7e4c68"])
    """The dataset: `upload:ID`, `s3://BUCKET/PREFIX` or `hf://datasets/OWNER/NAME`; in a file also a path. Required."""
    name: Name | None = Field(default=None, examples=["cats"])
    """Name of the model."""
    trigger: Name | None = Field(default=None, examples=["ohwx"])
    """Word that stands for the subject in prompts."""
    steps: Any = Field(default=None, examples=[2000])  # a parameter of the recipe, which checks it
    """Steps to train; the same as the parameter `steps`."""
    parameters: dict[StrictStr, Any] | None = Field(default=None, examples=[{"steps": 2000}])
    """Parameters of the recipe by name; those left out have the recipe's defaults."""
    provider: Name | None = Field(default=None, examples=["vastai"])
    """Provider of the machine; `driver` and `execution.provider` are other names for it. Default: the server's."""
    account: Name | None = Field(default=None, examples=[None])
    """Account at the provider, if there are several."""
    id: Name | None = Field(default=None, examples=[None])
    """Id of the job: up to 40 lower-case letters, digits and dashes. Submitting it again changes nothing."""
    owner: Name | None = Field(default=None, examples=[None])
    """User who owns the job and gets its notifications. Default: whoever asks."""
    max_price: Dollars | None = Field(default=None, examples=[0.6])
    """Maximum price per hour, in dollars."""
    max_hours: Annotated[Any, WithJsonSchema(_HOURS_SCHEMA)] = Field(default=None, examples=[4])
    """Stop after this many hours and keep the model."""
    max_spend: Dollars | None = Field(default=None, examples=[5])
    """Maximum cost of the job, in dollars."""
    monitoring: dict[str, Any] | None = Field(default=None, examples=[None])
    """How the training is watched; see the setting `monitoring`."""
    machine: AskedMachine | None = Field(default=None, examples=[None])
    offer: Name | None = Field(default=None, examples=[None])
    """Id of the offer to rent, as `stationmaster offers` lists it. Default: the best."""
    execution: Execution | None = Field(default=None, examples=[None])
    tool: Name | None = Field(default=None, exclude=True, examples=[None])
    """Another name for `recipe`."""
    driver: Name | None = Field(default=None, exclude=True, examples=[None])
    """Another name for `provider`."""

    @model_validator(mode="before")
    @classmethod
    def _one_name_each(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        require_shallow(data)
        for place, text in texts_in(data):
            try:
                checked_text(text)
            except ValueError as problem:
                raise ValueError(f"{_shown(place)} {problem}") from None
        return {_OTHER_NAMES.get(name, name): value for name, value in data.items()}

    @field_validator("max_price", "max_spend", mode="before")
    @classmethod
    def _money_can_be_read(cls, value: Any, info: Any) -> Any:
        try:
            price(info.field_name, value)
        except UserError as problem:
            raise ValueError(str(problem)) from None
        return value

    @classmethod
    def of(cls, request: TrainRequest) -> Self:
        """The request as a description. Raises UserError for a value that no file could have."""
        with invalid_as_user_error():
            return cls(
                recipe=request.recipe,
                dataset=str(request.dataset),
                name=request.name,
                trigger=request.trigger,
                parameters=dict(request.parameters),
                provider=request.provider,
                account=request.account,
                id=request.id,
                owner=request.owner,
                max_price=exact_dollars(request.max_price),
                max_hours=request.max_hours,
                max_spend=exact_dollars(request.max_spend),
                monitoring=dict(request.monitoring),
                machine=AskedMachine.of(request.machine),
                offer=request.offer,
            )

    def overlaid(self, given: JobFile) -> Self:
        """These values, overridden by the given ones; parameters and what is asked of the machine are merged."""
        values = given.model_dump(exclude_none=True, exclude={"machine"})
        if given.machine is not None:
            values["machine"] = (self.machine or AskedMachine()).model_copy(
                update=given.machine.model_dump(exclude_none=True)
            )
        values["parameters"] = {**(self.parameters or {}), **(given.parameters or {})}
        return self.model_copy(update=values)

    def request(self) -> TrainRequest:
        """Raises UserError if a required value is missing or not valid."""
        if not self.recipe:
            raise UserError("no recipe given", hint="pass --recipe; `stationmaster recipes list` lists them")
        if not self.dataset:
            raise UserError("no dataset given", hint="pass --dataset FOLDER")
        provider = self.provider or (self.execution.provider if self.execution is not None else None)
        steps = {} if self.steps is None else {"steps": self.steps}
        return TrainRequest(
            recipe=self.recipe,
            dataset=parse_reference(self.dataset),
            name=self.name,
            trigger=self.trigger,
            parameters={**(self.parameters or {}), **steps},
            provider=None if provider is None else provider_named(provider),
            account=self.account,
            id=self.id,
            owner=self.owner,
            max_price=price("max_price", self.max_price),
            max_hours=hours("max_hours", self.max_hours),
            max_spend=price("max_spend", self.max_spend),
            monitoring=self.monitoring or {},
            machine=MachineWish() if self.machine is None else self.machine.value(),
            offer=self.offer or None,
        )


def read_job_file(path: Path) -> JobFile:
    """Read a job file; the path of its dataset is relative to the file. Raises UserError."""
    try:
        data = read_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotFound(
            f"there is no file {path}", hint="give the path of a job file, or pass the options here"
        ) from None
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint="choose a file that you can read") from None
    except ValueError as problem:
        raise UserError(f"{path} cannot be read: {problem}", hint="write it as YAML in UTF-8") from None
    if not isinstance(data, dict):
        raise UserError(f"{path} must contain options by name", hint="for example: recipe: tiny-lora@1")
    with invalid_as_user_error(f"{path}: "):
        job = JobFile.model_validate(with_trainer_monitoring(data, path))
    if not job.dataset or not isinstance(source := parse_reference(job.dataset), Path):
        return job
    return job.model_copy(update={"dataset": str(path.parent / source)})


@contextmanager
def invalid_as_user_error(place: str = "") -> Iterator[None]:
    """Turn a ValidationError into a UserError that starts with the place."""
    try:
        yield
    except ValidationError as error:
        raise _user_error(error, place) from None


def price(name: str, value: Dollars | None) -> MicroDollars | None:
    """Parse an amount of dollars. Raises UserError."""
    if value is None:
        return None
    try:
        amount = from_dollars(value)
    except (TypeError, ValueError) as problem:
        raise UserError(f"{name}: {problem}", hint="write dollars, for example 1.50") from None
    if amount <= 0:
        raise UserError(f"{name} must be above zero", hint="write dollars, for example 1.50; leave it out for no limit")
    return amount


def hours(name: str, value: Any) -> float | None:
    """Check a number of hours. Raises UserError."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < _MOST_HOURS:
        raise UserError(f"{name}: {value!r} is not a number of hours", hint="write hours, for example 1.5")
    return float(value)


def _shown(name: str) -> str:
    """A name in an error, which must be valid text itself."""
    return name.encode("utf-8", "replace").decode()


def require_shallow(data: Any) -> None:
    """Raises ValueError for values that are nested so deeply that nothing could print them."""
    if _is_deeper(data, _MOST_LEVELS):
        raise ValueError(f"values are nested more than {_MOST_LEVELS} levels deep")


def _is_deeper(data: Any, levels: int) -> bool:
    """Whether lists and tables are inside each other more than so many times."""
    if not isinstance(data, dict | list | tuple):
        return False
    inner = data.values() if isinstance(data, dict) else data
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in inner)


def _user_error(error: ValidationError, place: str) -> UserError:
    """The first problem; unknown names come before all others."""
    problems = error.errors(include_url=False)
    first = next((one for one in problems if one["type"] == "extra_forbidden"), problems[0])
    where, kind = first["loc"], first["type"]
    name = str(where[0]) if where else ""
    if name == "machine":
        return UserError(
            f"{place}machine must contain only vram_gib and disk_gib, above zero",
            hint="for example: machine: {vram_gib: 48, disk_gib: 120}",
        )
    if name == "execution":
        return UserError(
            f"{place}execution must contain only a provider", hint="for example: execution: {provider: vastai}"
        )
    if kind == "extra_forbidden":
        known = [*JobFile.model_fields, *_OTHER_NAMES]
        return UserError(f"{place}{name} is not an option", hint=did_you_mean(name, known))
    if kind == "string_type" and name == "parameters":
        return UserError(
            f"{place}parameters: {first['input']!r} is not a name",
            hint="`stationmaster recipes show` lists a recipe's parameters",
        )
    if kind == "string_type":
        return UserError(f"{place}{name} must be text", hint=f'write it in quotes, for example {name}: "x"')
    if kind == "dict_type":
        return UserError(f"{place}{name} must be a table of names and values", hint=f"for example: {name}: {{name: 1}}")
    if kind == "string_too_long":
        return UserError(f"{place}{name} is longer than {LONGEST_NAME} characters", hint="shorten it")
    problem = first["msg"].removeprefix("Value error, ")
    hint = (
        "write dollars, for example 1.50"
        if name in ("max_price", "max_spend")
        else "remove them; the file must be YAML in UTF-8"
    )
    return UserError(f"{place}{problem}", hint=hint)
