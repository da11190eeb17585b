"""The styles behind the names of `lines`: the terminal's own colours, so that they suit its background."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style

Palette = Mapping[str, Style]

_COMMON = {
    "": Style(),
    "dim": Style(dim=True),
    "title": Style(bold=True),
    "neutral": Style(),
    "cursor": Style(reverse=True),
    "header": Style(bold=True, underline=True),
    "tab": Style(reverse=True, bold=True),
    "found": Style(bold=True, underline=True),
    "old": Style(dim=True, italic=True),
}

DARK: Palette = {
    **_COMMON,
    "good": Style(color="green"),
    "warning": Style(color="yellow"),
    "bad": Style(color="red", bold=True),
    "accent": Style(color="cyan"),
    "curve": Style(color="cyan"),
    "made_up": Style(color="black", bgcolor="yellow", bold=True),
}

# Yellow and cyan cannot be read on white.
LIGHT: Palette = {
    **_COMMON,
    "good": Style(color="green"),
    "warning": Style(color="magenta", bold=True),
    "bad": Style(color="red", bold=True),
    "accent": Style(color="blue"),
    "curve": Style(color="blue"),
    "made_up": Style(color="white", bgcolor="magenta", bold=True),
}


def has_light_background(environ: Mapping[str, str]) -> bool:
    """What terminals such as xterm, konsole and rxvt say of themselves.

    >>> has_light_background({"COLORFGBG": "0;15"}), has_light_background({"COLORFGBG": "15;0"})
    (True, False)
    """
    background = environ.get("COLORFGBG", "").rpartition(";")[2]
    return background in ("7", "15")
