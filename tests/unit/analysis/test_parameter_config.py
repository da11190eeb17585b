"""The config of a job: its parameters, or the file that its recipe filled in with the parameters behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stationmaster.analysis.configs.base import Setting
from stationmaster.analysis.configs.parameters import ParameterConfig, RecipeConfig, trainer_config_of
from stationmaster.analysis.levers import Lever
from stationmaster.recipes.configs import ConfigFile
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find

TINY = find("tiny-lora").recipe


@dataclass(frozen=True)
class KnownConfig:
    """A trainer's config with one setting that is given and one that is not."""

    framework: str = "kohya"
    trains_adapter: bool | None = True
    thresholds: Mapping[str, float] = field(default_factory=lambda: {"memory_warning_threshold": 0.8})

    def setting(self, lever: Lever) -> Setting | None:
        known = {
            Lever.LEARNING_RATE: Setting(path="learning_rate", value=1e-4, is_given=True),
            Lever.BATCH_SIZE: Setting(path="train_batch_size", value=1, is_given=False),
            Lever.EMA: Setting(path="ema", value=False, is_given=False),
        }
        return known.get(lever)


def test_a_job_without_a_known_config_is_set_by_its_parameters() -> None:
    config = trainer_config_of(TINY, resolve(TINY, {"batch_size": 16}), thresholds={"memory_critical_threshold": 0.9})
    assert isinstance(config, ParameterConfig)
    assert config.framework == "recipe"
    assert config.setting(Lever.BATCH_SIZE) == Setting(path="parameters.batch_size", value=16, is_given=True)
    assert config.setting(Lever.LEARNING_RATE) == Setting(path="parameters.learning_rate", value=0.01, is_given=True)
    assert config.setting(Lever.QUANTIZE) is None
    assert config.thresholds == {"memory_critical_threshold": 0.9}


def test_a_parameter_that_the_job_lacks_has_the_default() -> None:
    """A job of an older recipe of the same version may lack one that was added since."""
    setting = ParameterConfig(recipe=TINY, parameters={}).setting(Lever.BATCH_SIZE)
    assert setting is not None
    assert setting.value == 4


def test_a_file_that_no_known_trainer_reads_changes_nothing() -> None:
    files = [ConfigFile(path="config/own.ini", text="[batch]\nsize = 3\n")]
    assert isinstance(trainer_config_of(TINY, resolve(TINY, {}), files=files), ParameterConfig)


def test_what_a_config_leaves_to_another_file_is_read_from_the_parameters() -> None:
    sdxl = find("sdxl-lora").recipe
    parameters = ParameterConfig(
        recipe=sdxl, parameters=resolve(sdxl, {"batch_size": 4}), thresholds={"memory_critical_threshold": 0.9}
    )
    config = RecipeConfig(filled_in=KnownConfig(), parameters=parameters)
    assert config.framework == "kohya"
    assert config.setting(Lever.BATCH_SIZE) == Setting(path="parameters.batch_size", value=4, is_given=True)
    assert config.setting(Lever.LEARNING_RATE) == Setting(path="learning_rate", value=1e-4, is_given=True)
    assert config.setting(Lever.EMA) == Setting(path="ema", value=False, is_given=False)
    assert config.setting(Lever.PACKING) is None
    assert config.thresholds == {"memory_critical_threshold": 0.9, "memory_warning_threshold": 0.8}
