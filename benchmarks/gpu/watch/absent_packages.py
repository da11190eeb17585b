"""Stands in for packages that are not installed and that the measured training imports but never uses."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def stand_in_for(names: Iterable[str]) -> None:
    """Make each missing package of `names` importable; using anything of it raises RuntimeError.

    Code that only checks whether a package exists, without importing it, gets the true answer, except for names that
    end in `!`.
    """
    missing = {name.rstrip("!"): name.endswith("!") for name in names}
    sys.meta_path.append(
        _Finder({name: claimed for name, claimed in missing.items() if importlib.util.find_spec(name) is None})
    )


class _Finder(MetaPathFinder):
    def __init__(self, names: Mapping[str, bool]) -> None:
        self._claimed = names

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        claimed = self._claimed.get(name.partition(".")[0])
        # one frame up is the import system
        asked_only = sys._getframe(2).f_globals.get("__name__") == "importlib.util"
        if claimed is None or (asked_only and not claimed):
            return None
        return ModuleSpec(name, _StandInLoader(), is_package=True)


class _StandInLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


class _StandIn(ModuleType):
    __version__ = "0.0.0"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def refuse(*_: object, **__: object) -> None:
            raise RuntimeError(f"{self.__name__}.{name} is not installed on this machine")

        # a class, because some trainers derive from what they import
        return type(name, (), {"__init__": refuse, "__module__": self.__name__})
