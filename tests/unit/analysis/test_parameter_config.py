"""The config of a job: its parameters, or the file that its recipe filled in with the parameters behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from stationmaster.analysis.configs.base import Setting
from stationmaster.analysis.configs.parameters import ParameterConfig, RecipeConfig, trainer_config_of
from stationmaster.analysis.levers import Lever
from stationmaster.recipes.config_paths import parameter_behind
from stationmaster.recipes.configs import ConfigFile
from stationmaster.recipes.parameter_levers import parameter_with
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.plan import JobIdentity, render_plan
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


EVERY_LEVER_OF_FLUX = {
    Lever.BATCH_SIZE: ("config.process[0].train.batch_size", "batch_size"),
    Lever.STEPS: ("config.process[0].train.steps", "steps"),
    Lever.LEARNING_RATE: ("config.process[0].train.lr", "learning_rate"),
    Lever.EMA: ("config.process[0].train.ema_config.use_ema", "ema"),
    Lever.MODEL: ("config.process[0].model.name_or_path", "base_model"),
    Lever.SAVE_EVERY: ("config.process[0].save.save_every", "save_every"),
    Lever.KEEP_SAVES: ("config.process[0].save.max_step_saves_to_keep", "keep_saves"),
    Lever.RESOLUTION: ("config.process[0].datasets[0].resolution", "largest_resolution"),
}
EVERY_LEVER_OF_SDXL = {
    Lever.BATCH_SIZE: ("parameters.batch_size", "batch_size"),
    Lever.STEPS: ("max_train_steps", "steps"),
    Lever.LEARNING_RATE: ("learning_rate", "learning_rate"),
    Lever.MODEL: ("pretrained_model_name_or_path", "base_model"),
    Lever.SAVE_EVERY: ("save_every_n_steps", "save_every"),
    Lever.RESOLUTION: ("parameters.resolution", "resolution"),
}
SAMPLES_OF_FLUX = {Lever.SAMPLE_EVERY: ("config.process[0].sample.sample_every", "sample_every")}
SAMPLES_OF_SDXL = {Lever.SAMPLE_EVERY: ("sample_every_n_steps", "sample_every")}


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("flux-lora@2", EVERY_LEVER_OF_FLUX | SAMPLES_OF_FLUX),
        ("flux-lora@1", EVERY_LEVER_OF_FLUX | SAMPLES_OF_FLUX),
        ("flux-kontext-lora@2", EVERY_LEVER_OF_FLUX | SAMPLES_OF_FLUX),
        ("flux-kontext-lora@1", EVERY_LEVER_OF_FLUX),
        ("sdxl-lora@2", EVERY_LEVER_OF_SDXL | SAMPLES_OF_SDXL),
        ("sdxl-lora@1", EVERY_LEVER_OF_SDXL),
    ],
)
def test_every_lever_of_a_filled_in_config_leads_to_its_parameter(
    reference: str, expected: Mapping[Lever, tuple[str, str]]
) -> None:
    recipe = find(reference).recipe
    parameters = resolve(recipe, {"batch_size": 3, "save_every": 7, "learning_rate": 0.003})
    job = JobIdentity(id="j", name="cats", trigger="", attempt=1)
    plan = render_plan(recipe, parameters=parameters, job=job, machine_root="/jobs/j")
    config = trainer_config_of(recipe, parameters, files=plan.configs)
    found = {}
    for lever in Lever:
        setting = config.setting(lever)
        name = parameter_behind(recipe, setting.path) if setting else None
        name = name or parameter_with(recipe, lever)
        if setting is not None and name is not None:
            assert setting.is_given
            assert setting.value == parameters[name] or lever is Lever.RESOLUTION
            found[lever] = (setting.path, name)
    assert found == expected
