"""Why a GPU runs slower than it could, from the driver's bits for it."""

from __future__ import annotations

# NVIDIA's nvml.h, the strongest first. The other bits (idle, clocks chosen by the user, several GPUs in step) are no
# trouble. A slowdown by the hardware with neither cause named is its protection against high power.
_REASONS = (
    (0x40, "hw_thermal"),
    (0x80, "hw_power_brake"),
    (0x08, "hw_power_brake"),
    (0x20, "sw_thermal"),
    (0x04, "sw_power_cap"),
)


def strongest_reason(bits: int) -> str | None:
    """
    >>> strongest_reason(0x04 | 0x48), strongest_reason(0x01 | 0x02)
    ('hw_thermal', None)
    """
    return next((name for bit, name in _REASONS if bits & bit), None)
