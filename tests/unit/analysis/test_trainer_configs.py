"""Where each lever is in the configs of ai-toolkit and kohya."""

from __future__ import annotations

import pytest

from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.analysis.configs.reading import read_config
from stationmaster.analysis.levers import Lever
from stationmaster.errors import UserError

AI_TOOLKIT = """
config:
  process:
    - type: sd_trainer
      network: {type: lora, linear: 16}
      datasets:
        - {folder_path: data/one, resolution: [512, 768], cache_latents_to_disk: true}
        - {folder_path: data/two, resolution: [512, 1280], num_workers: 6}
      train: {batch_size: 4, lr: 1e-4, gradient_checkpointing: "false"}
      monitoring: {memory_warning_threshold: 0.9}
"""
KOHYA = """
[model_arguments]
pretrained_model_name_or_path = "models/base.safetensors"
[training]
network_module = "networks.lora"
learning_rate = 1e-4
unet_lr = 2e-4
sample_every_n_epochs = 2
"""


def ai_toolkit(text: str = AI_TOOLKIT) -> TrainerConfig:
    config = read_config(text, name="config.yaml")
    assert config is not None
    return config


def kohya(text: str = KOHYA) -> TrainerConfig:
    config = read_config(text, name="config.toml")
    assert config is not None
    return config


@pytest.mark.parametrize(
    ("lever", "path", "value", "given"),
    [
        (Lever.BATCH_SIZE, "config.process[0].train.batch_size", 4, True),
        (Lever.LEARNING_RATE, "config.process[0].train.lr", 1e-4, True),  # which YAML reads as a text
        (Lever.GRADIENT_CHECKPOINTING, "config.process[0].train.gradient_checkpointing", False, True),
        (Lever.EMA, "config.process[0].train.ema_config.use_ema", False, False),
        (Lever.WORKERS, "config.process[0].datasets[0].num_workers", 2, False),  # only the first dataset's counts
        (Lever.RESOLUTION, "config.process[0].datasets[1].resolution", [512, 1280], True),  # where the largest is
        (Lever.CACHE_LATENTS, "config.process[0].datasets[1].cache_latents_to_disk", False, False),
    ],
)
def test_ai_toolkit_has_a_lever_at_its_exact_path(lever: Lever, path: str, value: object, given: bool) -> None:
    setting = ai_toolkit().setting(lever)
    assert setting is not None
    assert (setting.path, setting.value, setting.is_given) == (path, value, given)


@pytest.mark.parametrize(
    ("lever", "path", "value"),
    [
        (Lever.LEARNING_RATE, "unet_lr", 2e-4),  # overrides the other
        (Lever.WORKERS, "max_data_loader_n_workers", 8),
        (Lever.QUANTIZE, "fp8_base", False),
        (Lever.CACHE_LATENTS, "cache_latents", False),
        (Lever.SAMPLE_EVERY, "sample_every_n_epochs", 2),
        (Lever.SAVE_EVERY, "save_every_n_steps", None),
        (Lever.DTYPE, "mixed_precision", "no"),
    ],
)
def test_kohya_has_a_lever_under_its_option(lever: Lever, path: str, value: object) -> None:
    setting = kohya().setting(lever)
    assert setting is not None
    assert (setting.path, setting.value) == (path, value)


def test_what_has_no_effect_is_no_lever() -> None:
    whole_model = ai_toolkit(AI_TOOLKIT.replace("network: {type: lora, linear: 16}", "device: cuda:0"))
    assert whole_model.setting(Lever.QUANTIZE) is None  # a full fine-tune cannot be quantised
    assert ai_toolkit(AI_TOOLKIT.replace("batch_size: 4", "disable_sampling: true")).setting(Lever.SAMPLE_EVERY) is None
    assert kohya().setting(Lever.EMA) is None
    assert kohya(f"{KOHYA}random_crop = true\n").setting(Lever.CACHE_LATENTS) is None


def test_thresholds_are_the_configs() -> None:
    assert ai_toolkit().thresholds == {"memory_warning_threshold": 0.9}
    assert kohya().thresholds == {}


def test_a_file_of_another_kind_is_no_config() -> None:
    assert read_config("just: words", name="notes.yaml") is None
    assert read_config("[1, 2]", name="list.json") is None
    assert read_config("\x00\x01", name="model.bin") is None


@pytest.mark.parametrize(("text", "name"), [("a = = b", "config.toml"), ("a: [1", "config.yaml")])
def test_a_broken_config_is_refused_in_one_line(text: str, name: str) -> None:
    with pytest.raises(UserError) as refused:
        read_config(text, name=name)
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)
