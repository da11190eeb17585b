"""Made-up scenes of the terminal app, and their pictures as SVG: the same bytes on every computer."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from textual.pilot import Pilot

from stationmaster.money import MicroDollars
from stationmaster.tui.app import FleetApp
from stationmaster.tui.braille import Curve
from stationmaster.tui.fleet import Tone
from stationmaster.tui.lines import line
from stationmaster.tui.sources.base import About, Detail
from stationmaster.tui.sources.job_rows import GROUPS
from tests.support.terminal.driving import until_text
from tests.support.terminal.scripted_source import AT, ScriptedSource, detail, log_entry, row, view

Press = Callable[[Pilot[None]], Awaitable[None]]

_FONTS = re.compile(r"@font-face \{.*?\}", re.DOTALL)  # addresses of other people's servers
_ROWS = (
    row("7f3k2q9a", name="hills-v3", status="training", progress=62.0, loss=0.0871, eta_seconds=2520.0),
    row("b1x8m0ce", name="portraits", status="stalled", icon="❌", tone=Tone.WARNING, progress=31.0, gpu="A100 SXM4",
        gpu_percent=1.0, loss=0.1432, eta_seconds=None, cost_per_hour=MicroDollars(1_234_000),
        note="no step for 21 min; the usual gap is 2 s"),
    row("k2v7d4tz", name="ink-style", status="sending", icon="🔄", tone=Tone.NEUTRAL, progress=None, gpu="RTX 3090",
        gpu_percent=None, memory_percent=None, loss=None, eta_seconds=None, total_cost=MicroDollars(40_000),
        cost_per_hour=MicroDollars(213_000)),
    row("e5n9w1qp", name="chat-7b", status="training", gpu="H100 SXM", progress=4.0, gpu_percent=93.9,
        memory_percent=88.2, loss=1.8342, cost_per_hour=MicroDollars(2_100_000), total_cost=MicroDollars(1_900_000),
        eta_seconds=45_000.0),
    row("p8r3j6ua", name="hills-v2", status="done", tone=Tone.NEUTRAL, progress=100.0, gpu_percent=None,
        memory_percent=None, loss=0.0794, cost_per_hour=None, total_cost=MicroDollars(2_410_000), eta_seconds=None,
        is_over=True),
    row("z4c0h7xy", name="logos", status="failed", icon="❌", tone=Tone.BAD, progress=12.0, gpu_percent=None,
        memory_percent=None, loss=None, cost_per_hour=None, total_cost=MicroDollars(310_000), eta_seconds=None,
        is_over=True, note="the GPU ran out of memory at step 96"),
)  # fmt: skip
_LOSS = tuple(0.08 + 0.5 * math.exp(-step / 90) + 0.015 * math.sin(step * 1.7) for step in range(620))


def pictures() -> Mapping[str, str]:
    """Every picture by its name."""
    return {
        "terminal-fleet": _picture(_nothing, wait_for="7f3k2q9a"),
        "terminal-narrow": _picture(_nothing, wait_for="7f3k2q9a", size=(80, 24)),
        "terminal-job": _picture(_press("enter"), wait_for="hills-v3  7f3k2q9a"),
        "terminal-question": _picture(_press("down", "x"), wait_for="Really stop", size=(100, 26)),
        "terminal-keys": _picture(_press("question_mark"), wait_for="pause or resume", size=(100, 40)),
    }


def _picture(press: Press, *, wait_for: str, size: tuple[int, int] = (132, 34)) -> str:
    source = ScriptedSource(about=About(title="Trainings of this computer", interval=1.0))
    lines = ["Saving at step 600", "Saved checkpoint to output/hills-v3_000000600.safetensors"]
    logs = [log_entry("7f3k2q9a", text) for text in lines]
    logs += [log_entry("e5n9w1qp", f"{{'loss': 1.8{step}, 'epoch': 0.0{step}}}") for step in range(3, 7)]
    source.details["7f3k2q9a"] = _opened(lines)
    source.show(view(*_ROWS, logs=tuple(logs), groups=GROUPS))
    app = FleetApp(source, now=lambda: AT)
    shown = ""

    async def run() -> None:
        nonlocal shown
        async with app.run_test(size=size) as pilot:
            await until_text(pilot, "7f3k2q9a")
            await press(pilot)
            await until_text(pilot, wait_for)
            await pilot.pause()
            shown = app.export_screenshot(title="stationmaster watch", simplify=True)

    asyncio.run(run())
    return _FONTS.sub("", shown)


def _opened(lines: list[str]) -> Detail:
    usual = detail("7f3k2q9a")
    return replace(
        usual,
        title="hills-v3  7f3k2q9a",
        facts=(
            (("Executing", "good"), ("  stage 5 of 10: training  flux-lora@1 on vastai, attempt 1", "")),
            (("████████████████──────────", "accent"), ("  620/1000 (62%), ETA 42m, loss 0.087, 0.15 steps/s", "")),
            line("$15.23 so far, quoted $17.80   1h9m since it was submitted   memory 18.9 GiB at the peak of 24 GiB"),
            line("● no stall: the training moves at its own pace", "good"),
        ),
        curves=(
            Curve(title="loss", x=tuple(map(float, range(620))), y=_LOSS, ends=("step 1", "step 620")),
            Curve(title="GPU memory", x=(0.0, 4.0, 5.0, 69.0), y=(1.0, 12.0, 18.9, 18.4), unit=" GB", bottom=0.0,
                  top=24.0, ends=("0", "1h9m")),
        ),
        tabs={**usual.tabs, "Log": [line(f"Step {step}: loss 0.08{step % 10}") for step in range(590, 620)]
              + [line(text) for text in lines]},
    )  # fmt: skip


async def _nothing(pilot: Pilot[None]) -> None:
    pass


def _press(*keys: str) -> Press:
    async def press(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    return press
