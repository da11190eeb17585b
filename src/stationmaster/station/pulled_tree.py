"""Where `pull` puts a job's files: inside the folder that was asked for, whatever a machine calls them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stationmaster.control.results.declared_files import has_safe_name
from stationmaster.errors import TransferFailed, UserError


class Pulled(Protocol):
    @property
    def attempt(self) -> int: ...
    @property
    def path(self) -> str: ...


def target_paths(files: Sequence[Pulled], folder: Path) -> list[Path]:
    """The path of each copy in the folder: the path that the file had on the machine.

    Attempts may use the same names for different bytes, so all but the last have their own folder. Raises
    TransferFailed for names that lead out of the folder or occur twice: they come from untrusted machines.
    """
    last = max((file.attempt for file in files), default=0)
    found: dict[Path, Pulled] = {}
    for file in files:
        place = folder / ("" if file.attempt == last else f"attempt-{file.attempt}") / file.path
        if not has_safe_name(file.path) or place in found:
            raise TransferFailed(f"{file.path!r} is not a valid name of an output; nothing was copied")
        found[place] = file
    return list(found)


def require_no_links(place: Path, folder: Path) -> None:
    """Raises UserError if a folder between `folder` and `place` is a link: the copy would go elsewhere."""
    between = [parent for parent in place.parents if parent.is_relative_to(folder) and parent != folder]
    for parent in between:
        if parent.is_symlink():
            raise UserError(f"{parent} is a link that leads out of {folder}", hint="remove it, or choose another DIR")
