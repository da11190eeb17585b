"""The container of a plan: image, mounts and limits, filled in for one job."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from stationmaster.errors import RecipeInvalid
from stationmaster.recipes.containers import Mount
from stationmaster.recipes.plan_steps import filled_in_text
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.templating import Values

_GIB = 1024**3
_MOUNTABLE = re.compile(r"/[^:,\n]*")  # engines separate source, target and options by these


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMount:
    source: str
    target: str
    read_only: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanContainer:
    """What trackside needs to run a step in a container."""

    engine: str
    image: str
    mounts: tuple[PlanMount, ...]
    memory_bytes: int | None
    shm_bytes: int
    network: str
    gpus: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "engine": self.engine,
            "image": self.image,
            "mounts": [
                {"source": mount.source, "target": mount.target, "read_only": mount.read_only} for mount in self.mounts
            ],
            "memory_bytes": self.memory_bytes,
            "shm_bytes": self.shm_bytes,
            "network": self.network,
            "gpus": self.gpus,
        }


def filled_in_container(recipe: Recipe, values: Values) -> PlanContainer | None:
    """The recipe's container for one job; raises RecipeInvalid for a mount that no engine accepts."""
    container = recipe.container
    if container is None:
        return None
    return PlanContainer(
        engine=recipe.runtime,
        image=container.image,
        mounts=tuple(_mount(recipe, mount, values) for mount in container.mounts),
        memory_bytes=None if container.memory_gib is None else round(container.memory_gib * _GIB),
        shm_bytes=round(container.shm_gib * _GIB),
        network=container.network,
        gpus=recipe.needs.gpus > 0,
    )


def _mount(recipe: Recipe, mount: Mount, values: Values) -> PlanMount:
    source, target = filled_in_text(mount.source, values), filled_in_text(mount.target, values)
    for path in (source, target):
        if not _MOUNTABLE.fullmatch(path) or ".." in path.split("/"):
            raise RecipeInvalid(
                f"{recipe.reference}: {path!r} cannot be mounted",
                hint="mounts are absolute paths without .. and without colons, commas and line breaks",
            )
    return PlanMount(source=source, target=target, read_only=mount.read_only)
