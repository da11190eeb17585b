"""AMD's GPUs, from rocm-smi or amd-smi.

Written from the documented outputs of these tools, which differ between versions; not tried on a real card.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stationmaster.model import Gpu, GpuMaker
from stationmaster.providers.gpus.tool import Ask, ToolFailed, ToolMissing

_GIB = 1024**3
_UNITS = {"B": 1, "KB": 1024, "MB": 1024**2, "GB": 1024**3}


async def find_amd_gpus(ask: Ask) -> list[Gpu]:
    """All GPUs that the tool lists. Raises ToolMissing and ToolFailed."""
    try:
        return list(parse_rocm_smi(await ask("rocm-smi", "--showproductname", "--showmeminfo", "vram", "--json")))
    except ToolMissing:
        names = await ask("amd-smi", "static", "--asic", "--json")
        memory = await ask("amd-smi", "metric", "--mem-usage", "--json")
        return list(parse_amd_smi(names, memory))


def parse_rocm_smi(text: str) -> Iterator[Gpu]:
    """One object for each card; a value is found by the words in its name."""
    cards = _json("rocm-smi", text)
    for key in sorted(cards, key=lambda key: (len(key), key)):
        if key.startswith("card") and key[4:].isdigit():
            values = {name.lower(): value for name, value in cards[key].items()}
            used = _number(values.get("vram total used memory (b)"))
            total = _number(values.get("vram total memory (b)"))
            named = (values.get(name) for name in ("card series", "device name", "card model"))
            yield _gpu(int(key[4:]), next((str(name) for name in named if name), "AMD GPU"), total, used)


def parse_amd_smi(names: str, memory: str) -> Iterator[Gpu]:
    """The cards of `static --asic` with the memory of `metric --mem-usage`."""
    in_use = {_card_number(card): card.get("mem_usage", {}) for card in _cards(memory)}
    for card in _cards(names):
        number = _card_number(card)
        usage = in_use.get(number, {})
        name = str(card.get("asic", {}).get("market_name") or "AMD GPU")
        yield _gpu(number, name, _bytes(usage.get("total_vram")), _bytes(usage.get("used_vram")))


def _gpu(number: int, name: str, total: float | None, used: float | None) -> Gpu:
    return Gpu(
        id=str(number),
        number=number,
        maker=GpuMaker.AMD,
        name=name,
        total_gib=(total or 0.0) / _GIB,
        free_gib=((total or 0.0) - (used or 0.0)) / _GIB,
        unusable=None if total else "its memory is unknown",
    )


def _cards(text: str) -> list[Mapping[str, Any]]:
    found = _json("amd-smi", text)
    return list(found.get("gpu_data", []) if isinstance(found, dict) else found)


def _card_number(card: Mapping[str, Any]) -> int:
    try:
        return int(card["gpu"])
    except (KeyError, TypeError, ValueError) as problem:
        raise ToolFailed("amd-smi answered what is not understood: a card without a number") from problem


def _bytes(amount: Any) -> float | None:
    """Bytes of `{"value": 24560, "unit": "MB"}`, or of a bare number of megabytes."""
    value, unit = (amount.get("value"), amount.get("unit", "MB")) if isinstance(amount, dict) else (amount, "MB")
    number = _number(value)
    return None if number is None else number * _UNITS.get(str(unit).upper(), 1)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None  # N/A


def _json(tool: str, text: str) -> Any:
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]  # warnings may come before
    try:
        return json.loads(text[min(starts) :])
    except ValueError as problem:
        raise ToolFailed(f"{tool} answered what is not understood: {text.strip()[:100]!r}") from problem
