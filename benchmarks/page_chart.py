"""A chart of 100,000 raw points in a real Chromium: painted, painted again with one more, and a spike of one step.

The page's own `LineChart` is drawn, with a smoothed line over the raw one and with the page's styles. A time ends when
the canvas can be read back, so drawing is in it. The spike is found by looking at the pixels.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import CDPSession, Page, sync_playwright

from _report import print_figure, report
from tests.support.capabilities import installed_chromium

POINTS = 100_000
SPIKE_AT = 43_210
ROUNDS = 15
BUDGET_PAINT_MILLISECONDS = 150.0
BUDGET_UPDATE_MILLISECONDS = 20.0
WEB = Path(__file__).resolve().parents[1] / "web"

# What draws a chart is fetched on first use: the first chart is none of the measured ones.
_READY = """async () => {
  await chartBench.draw(chartBench.series(100, 50));
  while (document.querySelector("canvas") === null) await new Promise((resolve) => setTimeout(resolve, 20));
}"""
# Idle before each: another chart's tidying up is not this one's time.
_PAINT = f"""async () => {{
  const made = chartBench.series({POINTS}, {SPIKE_AT});
  chartBench.clear();
  await new Promise((resolve) => setTimeout(resolve, 100));
  const took = await chartBench.draw(made);
  window.drawn = made;
  return took;
}}"""
_UPDATE = """async () => {
  await new Promise((resolve) => setTimeout(resolve, 100));
  window.drawn = chartBench.more(window.drawn, 1);
  return await chartBench.draw(window.drawn);
}"""
# The tallest drawn column of a band that lies above all values but the spike.
_SPIKE = """() => {
  const canvas = document.querySelector("canvas");
  const left = 80 * devicePixelRatio, top = Math.round(canvas.height * 0.2), high = Math.round(canvas.height * 0.2);
  const { data, width } = canvas.getContext("2d").getImageData(left, top, canvas.width - left, high);
  const columns = new Map();
  for (let place = 3; place < data.length; place += 4) {
    if (data[place] > 0) {
      const column = ((place - 3) / 4) % width;
      columns.set(column, (columns.get(column) ?? 0) + 1);
    }
  }
  return Math.max(0, ...columns.values()) / high;
}"""


def main() -> int:
    chromium = installed_chromium()
    if chromium is None:
        sys.exit("Chromium is missing: run make setup")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        built = _built(Path(folder) / "chart")
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.route("**/*", lambda route: route.fulfill(body="<!doctype html>", content_type="text/html"))
        page.goto("http://127.0.0.1/")  # nothing is asked of the network: a document of its own may store things
        page.on("pageerror", lambda error: print(f"error: {error}", file=sys.stderr))
        for style in built.glob("*.css"):
            page.add_style_tag(content=style.read_text())
        for script in built.glob("*.js"):
            page.add_script_tag(content=script.read_text())
        page.evaluate(_READY)
        paints = _measured(page, _PAINT)
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        began = _processor_seconds(session)
        updates = _measured(page, _UPDATE)
        processor = (_processor_seconds(session) - began) / (ROUNDS + 1) * 1000
        spike = float(page.evaluate(_SPIKE))
        browser.close()
    name = f"page, chart of {POINTS:,} points"
    report(f"{name}: paint", statistics.median(paints), "ms", at_most=BUDGET_PAINT_MILLISECONDS)
    report(f"{name}: one more point", statistics.median(updates), "ms", at_most=BUDGET_UPDATE_MILLISECONDS)
    print_figure(f"{name}: one more point, processor time of the page's thread", processor, "ms")
    report(f"{name}: share of a one-step spike that is drawn", spike, "share", at_least=0.9)
    return 0


def _measured(page: Page, what: str) -> list[float]:
    return [float(page.evaluate(what)) for _ in range(ROUNDS + 1)][1:]


def _processor_seconds(session: CDPSession) -> float:
    """What the page's thread has computed so far. Unlike a clock it does not count what else the computer does."""
    metrics = {metric["name"]: metric["value"] for metric in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["ThreadTime"])


def _built(folder: Path) -> Path:
    command: list[str | Path] = [sys.executable, WEB / "npm.py", "exec", "--", "vite", "build"]
    made = subprocess.run(
        [*command, "--config", "bench/vite.config.ts", "--outDir", folder, "--logLevel", "error"], check=False
    )
    if made.returncode != 0:
        sys.exit("error: the chart could not be built\nhint: run make page")
    return folder


if __name__ == "__main__":
    sys.exit(main())
