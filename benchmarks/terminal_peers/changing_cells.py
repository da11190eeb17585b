"""Made-up machines whose cells change with every second: the same columns as the terminal app shows."""

from __future__ import annotations

import math

COLUMNS = ("ID", "GPU", "Status", "Progress", "GPU%", "Mem%", "Loss", "Cost/hr", "Total", "ETA")


def rows(machines: int, second: int) -> list[tuple[str, ...]]:
    return [_row(number, second) for number in range(machines)]


def _row(number: int, second: int) -> tuple[str, ...]:
    swing = math.sin(second / 30 + number)
    step = 300 + second + 7 * number
    return (
        str(30007000 + number),
        ("RTX 4090", "A100", "H100")[number % 3],
        "✅ running",
        f"{1 + step // 1500}/3 {step % 1500 / 15:.1f}%",
        f"{70 + 20 * swing:.1f}%",
        f"{40 + 5 * swing:.1f}%",
        f"{2 + 3 * math.exp(-step / 300):.3f}",
        f"${0.4 + number % 3 / 2:.3f}",
        f"${step / 3600 * (0.4 + number % 3 / 2):.2f}",
        f"{max(0, 4500 - step) // 60}m",
    )
