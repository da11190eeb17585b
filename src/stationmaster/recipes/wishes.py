"""A recipe as one job uses it: on a larger machine than the recipe needs, or with fewer of its secrets."""

from __future__ import annotations

from collections.abc import Collection

from stationmaster.errors import UserError
from stationmaster.model import JobSpec, MachineWish
from stationmaster.recipes.schema import Recipe


def recipe_for(spec: JobSpec, recipe: Recipe) -> Recipe:
    """Return the recipe as this job uses it; the same object if nothing differs."""
    return without_secrets(with_wish(recipe, spec.machine), spec.unneeded_secrets)


def with_wish(recipe: Recipe, wish: MachineWish) -> Recipe:
    """Return the recipe with what the job asks of GPUs, disk and container; a wish lowers nothing."""
    if wish == MachineWish(avoided_machines=wish.avoided_machines):
        return recipe
    needs = recipe.needs.model_copy(
        update={
            "gpus": max(recipe.needs.gpus, wish.gpus or 0),
            "vram_gib": max(recipe.needs.vram_gib, wish.vram_gib or 0.0),
            "disk_gib": max(recipe.needs.disk_gib, wish.disk_gib or 0.0),
        }
    )
    container = recipe.container and recipe.container.model_copy(
        update={
            "memory_gib": recipe.container.memory_gib and max(recipe.container.memory_gib, wish.memory_gib or 0.0),
            "shm_gib": max(recipe.container.shm_gib, wish.shm_gib or 0.0),
        }
    )
    return recipe.model_copy(update={"needs": needs, "container": container})


def require_usable_gpus(recipe: Recipe, wish: MachineWish) -> None:
    """Raise UserError for fewer GPUs than the recipe needs, and for more than it would use."""
    least = recipe.needs.gpus
    if wish.gpus is None or wish.gpus == least:
        return
    if wish.gpus < least:
        raise UserError(
            f"{recipe.reference} needs {least} GPU, but {wish.gpus} was asked for",
            hint="leave out --gpus, or choose another recipe",
        )
    if wish.gpus > max(1, least) and recipe.launcher is None:
        raise UserError(
            f"{recipe.reference} trains on {max(1, least)} GPU, so {wish.gpus} would not make it faster",
            hint="leave out --gpus, or choose a recipe with a `launcher`, which starts one process per GPU",
        )


def without_secrets(recipe: Recipe, names: Collection[str]) -> Recipe:
    """Return the recipe whose commands do not get these secrets."""
    if not names:
        return recipe
    steps = tuple(step.model_copy(update={"secrets": _others(step.secrets, names)}) for step in recipe.steps)
    samples = recipe.samples and recipe.samples.model_copy(update={"secrets": _others(recipe.samples.secrets, names)})
    return recipe.model_copy(update={"steps": steps, "samples": samples})


def _others(secrets: tuple[str, ...], names: Collection[str]) -> tuple[str, ...]:
    return tuple(secret for secret in secrets if secret not in names)
