"""Templates in recipes: `{{ job.name }}` in texts, bare expressions in `when` and in the models of time and memory.

Values are data: they are inserted once and never read as a template themselves. A template may use only known names,
so an unknown one is found when the recipe is read, not on a rented machine.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError, Undefined, nodes
from jinja2.environment import TemplateExpression
from jinja2.exceptions import SecurityError
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

Names = Mapping[str, frozenset[str]]
"""What a template may use: group -> names, as in job -> {id, name}."""

Values = Mapping[str, Mapping[str, Any] | SimpleNamespace]
"""What the names stand for: group -> name -> value, or as `prepared` returns it."""

FILTERS = frozenset(
    {
        "abs",
        "filename",
        "float",
        "int",
        "join",
        "length",
        "lines",
        "lower",
        "max",
        "min",
        "replace",
        "round",
        "trim",
        "upper",
    }
)

_LONGEST_FILENAME = 80
_LONGEST_TEXT = 1_000_000
_MOST_BITS = 4096
_MOST_DIGITS = 15
_ALLOWED_NODES = (
    nodes.Template,
    nodes.Output,
    nodes.TemplateData,
    nodes.If,
    nodes.Name,
    nodes.Getattr,
    nodes.Const,
    nodes.List,
    nodes.Tuple,
    nodes.Keyword,
    nodes.Filter,
    nodes.Test,
    nodes.CondExpr,
    nodes.Compare,
    nodes.Operand,
    nodes.And,
    nodes.Or,
    nodes.Not,
    nodes.Concat,
    nodes.Add,
    nodes.Sub,
    nodes.Mul,
    nodes.Div,
    nodes.FloorDiv,
    nodes.Mod,
    nodes.Neg,
    nodes.Pos,
)


class TemplateFault(Exception):
    """A template cannot be used."""


def check_template(text: str, names: Names) -> None:
    """Raise TemplateFault unless `text` is a template that uses only `names`."""
    try:
        tree = _environment().parse(text)
        _check_nodes(tree, names)
    except TemplateError as error:
        raise TemplateFault(f"not a template: {error}") from None
    except RecursionError:
        raise TemplateFault("nested too deeply") from None


def check_expression(text: str, names: Names) -> None:
    """Raise TemplateFault unless `text` is one expression that uses only `names`."""
    try:
        parser = Parser(_environment(), text, state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise TemplateFault(f"`{text}` is more than one expression")
        _check_nodes(tree, names)
    except TemplateError as error:
        raise TemplateFault(f"`{text}` is not an expression: {error}") from None
    except RecursionError:
        raise TemplateFault("nested too deeply") from None


def render(text: str, values: Values) -> str:
    """`text` with its names replaced by their values, each as it is.

    >>> render("{{ job.name }}.log", {"job": {"name": "{{ 7 * 7 }}; rm -rf $(pwd)"}})
    '{{ 7 * 7 }}; rm -rf $(pwd).log'
    """
    if "{" not in text and not text.endswith("\n"):
        return text  # as most arguments of commands are
    try:
        return _compiled(text).render(_namespaces(values))
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise TemplateFault(f"`{text}` cannot be rendered: {error}") from None


def evaluate(text: str, values: Values) -> Any:
    """The value of one expression.

    >>> evaluate("[parameters.pace, 0.5] | max", {"parameters": {"pace": 0.1}})
    0.5
    """
    try:
        value = _compiled_expression(text)(**_namespaces(values))
    except (TemplateError, TypeError, ValueError, ArithmeticError) as error:
        raise TemplateFault(f"`{text}` has no value: {error}") from None
    if isinstance(value, Undefined):
        raise TemplateFault(f"`{text}` has no value")
    return value


def prepared(values: Values) -> Values:
    """The same values, converted once for all templates that are filled in with them."""
    return _namespaces(values)


def names_in(text: str, group: str) -> frozenset[str]:
    """The names of one group that an expression uses.

    >>> sorted(names_in("2.5 if parameters.ema else parameters.rank / 8", "parameters"))
    ['ema', 'rank']
    """
    tree = Parser(_environment(), text, state="variable").parse_expression()
    found = [tree, *tree.find_all(nodes.Getattr)]
    return frozenset(
        node.attr
        for node in found
        if isinstance(node, nodes.Getattr) and isinstance(node.node, nodes.Name) and node.node.name == group
    )


def filename(value: object) -> str:
    """One safe path component made of `value`: no separator, no wildcard, no leading dot, never empty.

    >>> filename("../My portrait [2]"), filename("")
    ('My_portrait_2', 'unnamed')
    """
    text = unicodedata.normalize("NFC", str(value))
    plain = re.sub(r"[^\w.-]+", "_", text.rpartition("/")[2]).strip("._-")
    while len(plain.encode()) > _LONGEST_FILENAME:
        plain = plain[:-1]
    return plain or "unnamed"


def lines(value: object) -> list[str]:
    """The lines of a text, without blank ones.

    >>> lines("a cat\\n\\n a dog ")
    ['a cat', 'a dog']
    """
    return [line.strip() for line in str(value).splitlines() if line.strip()]


class _BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Numbers are multiplied, texts are not: a short template gives no text or number that fills the memory."""

    intercepted_binops = frozenset({"*", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if not (isinstance(left, int | float) and isinstance(right, int | float)):
            raise SecurityError(f"`{operator}` is only for numbers")
        value = super().call_binop(context, operator, left, right)
        if isinstance(value, int) and value.bit_length() > _MOST_BITS:
            raise SecurityError("a number is too large")
        return value


def _replace(value: object, old: object, new: object) -> str:
    text, before, after = str(value), str(old), str(new)
    return _bounded(text, len(text) + text.count(before) * len(after)).replace(before, after)


def _join(values: Iterable[object], between: object = "") -> str:
    parts, glue = [str(each) for each in values], str(between)
    return _bounded(glue, sum(map(len, parts)) + len(parts) * len(glue)).join(parts)


def _bounded(text: str, length: int) -> str:
    if length > _LONGEST_TEXT:
        raise SecurityError(f"a text would have more than {_LONGEST_TEXT} characters")
    return text


def _round(value: float, digits: int = 0) -> float:
    # Jinja's own also rounds up and down, by powers of ten as large as one likes.
    return round(float(value), min(digits, _MOST_DIGITS))


# A worker fills in the same recipe's texts for every job; compiling one takes a millisecond, rendering it far less.
@lru_cache(maxsize=1024)
def _compiled(text: str) -> Template:
    return _environment().from_string(text)


@lru_cache(maxsize=1024)
def _compiled_expression(text: str) -> TemplateExpression:
    return _environment().compile_expression(text, undefined_to_none=False)


@lru_cache(maxsize=1)
def _environment() -> ImmutableSandboxedEnvironment:
    environment = _BoundedEnvironment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, finalize=_written
    )
    own: dict[str, Callable[..., Any]] = {
        "filename": filename,
        "lines": lines,
        "replace": _replace,
        "join": _join,
        "round": _round,
    }
    environment.filters = {name: environment.filters[name] for name in FILTERS - own.keys()} | own
    environment.globals = {}
    return environment


def _written(value: Any) -> Any:
    # Trainers' config files and flags know true and false, not Python's spelling.
    return str(value).lower() if isinstance(value, bool) else value


def _namespaces(values: Values) -> dict[str, SimpleNamespace]:
    # A dict would answer `parameters.items` with its method; a namespace has only what was put into it.
    return {
        group: members if isinstance(members, SimpleNamespace) else SimpleNamespace(**members)
        for group, members in values.items()
    }


def _check_nodes(node: nodes.Node, names: Names) -> None:
    if isinstance(node, nodes.Getattr):
        return _check_name(node, names)
    if isinstance(node, nodes.Name):
        raise TemplateFault(_unknown(node.name, names))
    if not isinstance(node, _ALLOWED_NODES):
        raise TemplateFault(f"{type(node).__name__.lower()} is not allowed in a recipe's template")
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        raise TemplateFault(f"there is no filter `{node.name}`; use one of: {', '.join(sorted(FILTERS))}")
    for child in node.iter_child_nodes():
        _check_nodes(child, names)
    return None


def _check_name(node: nodes.Getattr, names: Names) -> None:
    if not isinstance(node.node, nodes.Name):
        raise TemplateFault(f"`.{node.attr}` can only follow a name such as job or parameters")
    group = node.node.name
    if node.attr not in names.get(group, frozenset()):
        raise TemplateFault(_unknown(f"{group}.{node.attr}", names))


def _unknown(name: str, names: Names) -> str:
    return f"unknown name `{name}`; use one of: {', '.join(_listed(names))}"


def _listed(names: Names) -> Iterator[str]:
    for group in sorted(names):
        for name in sorted(names[group]):
            yield f"{group}.{name}"
