"""A dry run shows everything that a job would be: its commands, its config files, and each kind of warning once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from stationmaster.station.proposals import Terms, TrainRequest
from tests.support.jobs.recipe_jobs import MODEL, RecipeWorld, scripted

CONFIG = """
configs:
  - path: nested/trainer.yaml
    format: yaml
    data:
      steps: "{{ parameters.steps }}"
      trigger: "{{ job.trigger }}"
      prompts: "{{ parameters.sample_prompts | lines }}"
"""
PROMPTS = '  sample_prompts: {type: str, default: "[trigger]", help: Prompts.}\n'
RESOLUTION = "  resolution: {type: int, default: 1024, lever: resolution, help: Pixels a side.}\n"


def with_parameter(recipe: str, parameter: str) -> str:
    return recipe.replace("parameters:\n", f"parameters:\n{parameter}", 1)


def test_the_config_files_that_are_shown_are_those_that_a_job_gets(tmp_path: Path) -> None:
    recipe = with_parameter(scripted("cat {{ config.dir }}/nested/trainer.yaml\n" + MODEL, more=CONFIG), PROMPTS)
    with RecipeWorld(tmp_path, recipe) as world:
        shown = world.station.proposals.check(
            TrainRequest(recipe="scripted@1", dataset=world.pictures, trigger="ohwx", id="mine")
        )
        (config,) = shown.configs
        assert config.path == "/opt/stationmaster/jobs/mine/config/nested/trainer.yaml"
        assert "steps: 3\n" in config.text
        assert "[trigger]" not in config.text, "captions of the dataset are the prompts"
        job_id = world.submit(trigger="ohwx")
        world.work_until_ended(job_id)
        log = b"".join(chunk.data for _, chunk in world.station.logs.of_job(job_id))
    assert log.decode() == config.text


@pytest.fixture(scope="module")
def small_pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("some")
    for number, side in enumerate((512, 512, 512, 768, 1024)):
        Image.effect_noise((side, side), 60 + 20 * number).save(folder / f"{number}.png", compress_level=1)
    return folder


def terms_of(small_pictures: Path, tmp_path: Path, recipe: str, **parameters: Any) -> Terms:
    with RecipeWorld(tmp_path, recipe) as world:
        request = TrainRequest(recipe="scripted@1", dataset=small_pictures, parameters=parameters, name="x")
        return world.station.proposals.check(request)


@pytest.mark.parametrize(
    ("resolution", "note"),
    [
        (None, "0.png: 512×512 pixels: at least 1024 on the shorter side is recommended (and 3 more like it; "
         "`stationmaster dataset check` lists them)"),
        (1024, "0.png: 512×512 pixels: at least 1024 on the shorter side is recommended (and 3 more like it; "
         "`stationmaster dataset check` lists them)"),
        (768, "0.png: 512×512 pixels: at least 768 on the shorter side is recommended (and 2 more like it; "
         "`stationmaster dataset check` lists them)"),
        (512, None),
    ],
)  # fmt: skip
def test_small_pictures_are_told_once_against_the_resolution_that_is_trained(
    small_pictures: Path, tmp_path: Path, resolution: int | None, note: str | None
) -> None:
    recipe = with_parameter(scripted(), RESOLUTION).replace("{min_images: 1}", "{min_images: 1, recommended_side: 900}")
    given = {} if resolution is None else {"resolution": resolution}
    notes = [one for one in terms_of(small_pictures, tmp_path, recipe, **given).notes if "shorter side" in one]
    assert notes == ([] if note is None else [note])


def test_a_recipe_without_a_resolution_judges_by_the_side_that_it_recommends(
    small_pictures: Path, tmp_path: Path
) -> None:
    recipe = scripted().replace("{min_images: 1}", "{min_images: 1, recommended_side: 600}")
    (note,) = [one for one in terms_of(small_pictures, tmp_path, recipe).notes if "shorter side" in one]
    assert note.startswith("0.png: 512×512 pixels: at least 600 on the shorter side is recommended (and 2 more")
