"""The config of a run whose trainer has no config file that is known: the recipe's parameters that declare a lever."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stationmaster.analysis.configs.base import Setting, TrainerConfig
from stationmaster.analysis.configs.reading import read_config
from stationmaster.analysis.levers import Lever
from stationmaster.recipes.config_paths import PARAMETERS
from stationmaster.recipes.configs import ConfigFile
from stationmaster.recipes.parameter_levers import parameter_with
from stationmaster.recipes.schema import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterConfig:
    """A job's parameters as a config: the path of a setting is `parameters.NAME`."""

    recipe: Recipe
    parameters: Mapping[str, Any]
    """Every parameter's value, as `resolve` returns them."""
    thresholds: Mapping[str, float] = field(default_factory=dict)

    framework: str = "recipe"
    trains_adapter: bool | None = None

    def setting(self, lever: Lever) -> Setting | None:
        name = parameter_with(self.recipe, lever)
        if name is None:
            return None
        default = self.recipe.parameters[name].default
        return Setting(path=f"{PARAMETERS}.{name}", value=self.parameters.get(name, default), is_given=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeConfig:
    """A trainer's config that a recipe filled in; what it leaves to another file is read from the parameters.

    sd-scripts takes its batch size from the dataset's file if that has one, and the training's config says nothing.
    """

    filled_in: TrainerConfig
    parameters: ParameterConfig

    @property
    def framework(self) -> str:
        return self.filled_in.framework

    @property
    def trains_adapter(self) -> bool | None:
        return self.filled_in.trains_adapter

    @property
    def thresholds(self) -> Mapping[str, float]:
        return {**self.parameters.thresholds, **self.filled_in.thresholds}

    def setting(self, lever: Lever) -> Setting | None:
        own = self.filled_in.setting(lever)
        return own if own is not None and own.is_given else self.parameters.setting(lever) or own


def trainer_config_of(
    recipe: Recipe,
    parameters: Mapping[str, Any],
    *,
    files: Iterable[ConfigFile] = (),
    thresholds: Mapping[str, float] | None = None,
) -> TrainerConfig:
    """Return the config of a job: its recipe's filled-in file, if a known trainer reads it, else its parameters.

    `files` are the plan's configs. `thresholds` are the job's own; those of the file win.
    """
    declared = ParameterConfig(recipe=recipe, parameters=parameters, thresholds=thresholds or {})
    read = [found for file in files if (found := read_config(file.text, name=file.path)) is not None]
    if not read:
        return declared
    return RecipeConfig(filled_in=max(read, key=_given), parameters=declared)


def _given(config: TrainerConfig) -> int:
    """How many levers a config sets: of several files, such as a dataset's, the training's sets most."""
    settings = (config.setting(lever) for lever in Lever if not lever.is_outside)
    return sum(setting is not None and setting.is_given for setting in settings)
