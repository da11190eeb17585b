"""Names that a person may have meant instead of a wrong one. Pure."""

from __future__ import annotations

from collections.abc import Iterable

_MOST = 3
_ALIKE = 0.6  # of 1, for equal names
_NEARLY_AS_GOOD = 0.1
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
    wanted = wrong.casefold()
    likeness = {name: _likeness(wanted, name.casefold()) for name in names}
    best = max(likeness.values(), default=0.0)
    if best < _ALIKE:
        return [name for name in names if name.casefold().startswith(wanted)][:most]
    near = [name for name in names if likeness[name] >= max(_ALIKE, best - _NEARLY_AS_GOOD)]
    return sorted(near, key=lambda name: -likeness[name])[:most]


def _likeness(one: str, other: str) -> float:
    from difflib import SequenceMatcher  # only for errors, and `--help` imports this module

    return SequenceMatcher(None, one, other).ratio()


def did_you_mean(wrong: str, known: Iterable[str], form: str = "{}", *, most: int = 1) -> str | None:
    """A hint with the names that may have been meant, each put into `form`; None if no name is near.

    >>> did_you_mean("trian", ["train", "jobs"], "stationmaster {}")
    'did you mean `stationmaster train`?'
    """
    near = near_names(wrong, known, most=most)
    return f"did you mean {' or '.join(f'`{form.format(name)}`' for name in near)}?" if near else None
