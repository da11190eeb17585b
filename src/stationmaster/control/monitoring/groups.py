"""Groups of machines by name: ids, and patterns of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from stationmaster.errors import UserError
from stationmaster.near_names import did_you_mean


class Groups:
    def __init__(self, members: Mapping[str, Sequence[str]]) -> None:
        """`members` has ids and patterns of labels such as lora-* by the group's name."""
        self._members = members

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._members)

    def require(self, name: str) -> None:
        """Raises UserError if there is no such group."""
        if name in self._members:
            return
        if not self._members:
            raise UserError(f"there is no group {name!r}", hint="set monitor.groups in the settings")
        hint = did_you_mean(name, self._members) or f"groups of the settings: {', '.join(self._members)}"
        raise UserError(f"there is no group {name!r}", hint=hint)

    def of(self, machine_id: str, label: str) -> tuple[str, ...]:
        """The groups of a machine.

        >>> Groups({"loras": ["lora-*", "17"], "rest": ["18"]}).of("17", "")
        ('loras',)
        """
        return tuple(
            name
            for name, members in self._members.items()
            if any(machine_id == member or (label and fnmatchcase(label, member)) for member in members)
        )
