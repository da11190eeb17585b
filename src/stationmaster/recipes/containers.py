"""The container that a recipe's steps may run in."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from stationmaster.recipes.fields import IMAGE, Part, Template

Engine = Literal["docker", "podman"]


class Mount(Part):
    """A folder of the machine that is mounted into the container."""

    source: Template
    """An absolute path on the machine; created if it does not exist."""
    target: Template
    """Its absolute path in the container."""
    read_only: bool = False


class Container(Part):
    """The image that steps run in. The job's folder is mounted at its own path, so that all paths stay the same."""

    image: str = Field(pattern=IMAGE)
    """Pulled before the first step if it is not on the machine; best given with its digest."""
    mounts: tuple[Mount, ...] = ()
    memory_gib: Annotated[float, Field(gt=0)] | None = None
    """Memory limit; a step that needs more is killed, and the job reports it."""
    shm_gib: Annotated[float, Field(gt=0)] = 1.0
    """Shared memory; the workers of data loaders need some."""
    network: Literal["host", "none"] = "host"
