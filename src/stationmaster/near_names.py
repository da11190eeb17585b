"""Names that a person may have meant instead of a wrong one. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_MOST = 3
_ALIKE = 0.6
_LONGEST = 200  # comparing is quadratic; names are shorter


def near_names(wrong: str, known: Iterable[str], *, most: int = _MOST) -> list[str]:
    """The known names that look most like the wrong one, the nearest first.

    Upper and lower case are alike. A name that begins with what was typed counts, too, if no other is near.

    >>> near_names("trian", ["train", "trust", "jobs"])
    ['train']
    >>> near_names("flux", ["flux-lora@1", "flux-kontext-lora@1", "tiny-lora@1"])
    ['flux-lora@1', 'flux-kontext-lora@1']
    """
    if not wrong or len(wrong) > _LONGEST:
        return []
    names = list(dict.fromkeys(name for name in known if 0 < len(name) <= _LONGEST))
    folded = {name: name.casefold() for name in names}
    wanted = wrong.casefold()
    near = difflib.get_close_matches(wanted, folded.values(), n=most, cutoff=_ALIKE)
    found = [name for each in dict.fromkeys(near) for name in names if folded[name] == each]
    return (found or [name for name in names if folded[name].startswith(wanted)])[:most]


def did_you_mean(wrong: str, known: Iterable[str], form: str = "{}", *, most: int = 1) -> str | None:
    """A hint with the names that may have been meant, each put into `form`; None if no name is near.

    >>> did_you_mean("trian", ["train", "jobs"], "stationmaster {}")
    'did you mean `stationmaster train`?'
    """
    near = near_names(wrong, known, most=most)
    return f"did you mean {' or '.join(f'`{form.format(name)}`' for name in near)}?" if near else None
