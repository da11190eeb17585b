"""A recipe for a job that asks more of its machine than the recipe does."""

from __future__ import annotations

from stationmaster.model import MachineWish
from stationmaster.recipes.schema import Recipe


def with_wish(recipe: Recipe, wish: MachineWish) -> Recipe:
    """Return the recipe with what the job asks of GPU, disk and container; a wish lowers nothing."""
    if wish == MachineWish(avoided_machines=wish.avoided_machines):
        return recipe
    needs = recipe.needs.model_copy(
        update={
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
