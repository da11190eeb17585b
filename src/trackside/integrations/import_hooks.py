"""Changes modules in memory right after they are imported, without importing them earlier than the program does."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, Callable, Optional

from trackside.integrations.quiet_hooks import quiet

Change = Callable[[ModuleType], None]


def change_after_import(change_for: Callable[[str], Optional[Change]]) -> None:
    """Call the change that `change_for` returns for a module's name, once the module is imported."""
    sys.meta_path.insert(0, _Finder(change_for))


class _Finder(MetaPathFinder):
    """Finds modules as Python does, and adds the change to what loads them."""

    def __init__(self, change_for: Callable[[str], Optional[Change]]) -> None:
        self._change_for = change_for

    def find_spec(self, fullname: str, path: Any, target: Optional[ModuleType] = None) -> Optional[ModuleSpec]:
        change = self._change_for(fullname)
        if change is None:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None  # another finder may know it; then it stays as it is
        load = spec.loader.exec_module

        def load_and_change(module: ModuleType) -> None:
            load(module)
            quiet(change)(module)

        spec.loader.exec_module = load_and_change  # type: ignore[method-assign]
        return spec
