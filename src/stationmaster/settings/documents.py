"""YAML as people write it by hand: a name given twice, aliases and bottomless nesting are refused, in words."""

from __future__ import annotations

from typing import Any

import yaml

_DEEPEST = 32


def read_yaml(text: str) -> Any:
    """The data in `text`. Raises ValueError, in one line, for what cannot be read or could not be meant.

    >>> read_yaml("worker: {slots: 3}")
    {'worker': {'slots': 3}}
    """
    try:
        return yaml.load(text, Loader=_Loader)  # the safe one, only stricter
    except yaml.MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        line = f" (line {mark.line + 1})" if mark else ""
        raise ValueError(f"{problem.problem or problem.context}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as problem:
        raise ValueError(" ".join(str(problem).split())) from None


class _Loader(yaml.SafeLoader):
    _depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            raise yaml.MarkedYAMLError(problem="aliases (*name) are not allowed: write it out", problem_mark=mark)
        if self._depth >= _DEEPEST:
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=mark)
        self._depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self._depth -= 1

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"`{key.value}` is given twice", problem_mark=key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)
