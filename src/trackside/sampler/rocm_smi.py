"""GPU readings of AMD cards from rocm-smi or amd-smi.

Written from the documented outputs of these programs, which differ between versions; not tried on a real card. Values
are found by words in their names, and what is not found is None.
"""

from __future__ import annotations

from typing import Any, Callable, Iterator, Mapping

from trackside.machine.query import Query
from trackside.machine.visible_gpus import Visible
from trackside.sampler.gpu_answer import GpuAnswer, GpuSourceError
from trackside.sampler.paced_query import PacedQuery
from trackside.sampler.sample import GB, GpuReading

ROCM_SMI, AMD_SMI = "rocm-smi", "amd-smi"
_ROCM_OPTIONS = ("--showmeminfo", "vram", "--showuse", "--showtemp", "--showpower", "--showproductname", "--json")
_AMD_OPTIONS = ("metric", "--usage", "--mem-usage", "--temperature", "--power", "--clock", "--json")
_UNITS = {"B": 1.0, "KB": 1024.0, "MB": 1024.0**2, "GB": 1024.0**3}


class RocmSmi:
    """The visible GPUs that the program lists."""

    def __init__(
        self, program: str, *, now: Callable[[], float], limit_seconds: float = 2.0, visible: Visible = None
    ) -> None:
        self._visible = visible
        self._name = program.rpartition("/")[2]
        self._program = PacedQuery(Query(program, limit_seconds=limit_seconds), now=now)

    def read(self) -> GpuAnswer | None:
        """Return the GPUs; None while the program rests. Raises GpuSourceError if it fails or hangs."""
        if not self._program.is_free():
            return None
        is_amd_smi = self._name == AMD_SMI
        text = self._program.ask(*(_AMD_OPTIONS if is_amd_smi else _ROCM_OPTIONS))
        if text is None:
            raise GpuSourceError("%s %s" % (self._name, "hangs" if self._program.hung else "fails"))
        try:
            gpus = parse_amd_smi(text) if is_amd_smi else parse_rocm_smi(text)
        except (ValueError, TypeError, AttributeError) as error:
            raise GpuSourceError("the output of %s is not understood: %s" % (self._name, error)) from error
        visible = self._visible
        return GpuAnswer(tuple(gpu for gpu in gpus if visible is None or str(gpu.gpu_index) in visible))

    def close(self) -> None:
        """Nothing is held."""


def parse_rocm_smi(text: str) -> tuple[GpuReading, ...]:
    """Return the GPUs of `rocm-smi --json`: one object for each card. Raises ValueError or AttributeError."""
    cards = _json(text)
    return tuple(
        _rocm_card(int(name[4:]), cards[name])
        for name in sorted(cards, key=lambda name: (len(name), name))
        if name.startswith("card") and name[4:].isdigit()
    )


def _rocm_card(index: int, values: Mapping[str, Any]) -> GpuReading:
    def number(*words: str) -> float | None:
        return next((_number(values[key]) for key in values if all(word in key.lower() for word in words)), None)

    used, total = number("vram", "used", "(b)"), number("vram total memory", "(b)")
    names = [str(values[key]) for key in values if key.lower() in ("card series", "device name", "card model")]
    return GpuReading(
        gpu_index=index,
        name=names[0] if names else "",
        memory_used_gb=None if used is None else used / GB,
        memory_total_gb=None if total is None else total / GB,
        utilization_percent=number("gpu use", "%"),
        temperature_c=_first(number("temperature", "edge"), number("temperature", "junction"), number("temperature")),
        power_watts=number("package power", "(w)"),
    )


def parse_amd_smi(text: str) -> tuple[GpuReading, ...]:
    """Return the GPUs of `amd-smi metric --json`. Raises ValueError, TypeError or AttributeError."""
    found = _json(text)
    cards = found.get("gpu_data", []) if isinstance(found, dict) else found
    return tuple(_amd_card(card) for card in cards)


def _amd_card(card: Mapping[str, Any]) -> GpuReading:
    values = dict(_flat(card))
    used, total = (_bytes(values, "mem_usage.%s_vram" % kind) for kind in ("used", "total"))
    return GpuReading(
        gpu_index=int(values["gpu"]),
        memory_used_gb=None if used is None else used / GB,
        memory_total_gb=None if total is None else total / GB,
        utilization_percent=_value(values, "usage.gfx_activity"),
        temperature_c=_first(_value(values, "temperature.edge"), _value(values, "temperature.hotspot")),
        power_watts=_first(_value(values, "power.socket_power"), _value(values, "power.average_socket_power")),
        clock_mhz=_value(values, "clock.gfx_0.clk"),
    )


def _flat(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from _flat(value, "%s%s." % (before, key))
        else:
            yield before + key, value


def _value(values: Mapping[str, Any], name: str) -> float | None:
    return _number(values.get(name + ".value", values.get(name)))


def _bytes(values: Mapping[str, Any], name: str) -> float | None:
    value = _value(values, name)
    return None if value is None else value * _UNITS.get(str(values.get(name + ".unit", "MB")).upper(), 1.0)


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None  # N/A


def _json(text: str) -> Any:
    import json  # slow to import, needed only where there are such cards

    return json.loads(text[min(text.find(mark) for mark in "{[" if mark in text) :])  # warnings may come before
