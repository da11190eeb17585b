"""The page's first view with 2,000 jobs, in a real Chromium that has nothing cached, from a real `serve`.

Until the first trainings are painted; the script that the browser fetched for it; and how much moved afterwards.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, Response, sync_playwright

from _installation import JOBS, add_jobs, serving
from _report import print_figure, report
from stationmaster.config import load_settings
from stationmaster.station.local.station import LocalStation
from stationmaster.station.tokens import NewToken
from tests.support.capabilities import installed_chromium

BUDGET_SECONDS = 1.0
BUDGET_SCRIPT_KILOBYTES = 150.0
BUDGET_SHIFT = 0.05
ROUNDS = 5
LATE_MILLISECONDS = 2_000  # what still moves after this time is not part of the first view

# Times are the browser's own, from the start of the navigation. A frame is on the screen when the one after it begins.
OBSERVE = """
window.shift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shift += entry.value;
}).observe({ type: "layout-shift", buffered: true });
const waiting = new MutationObserver(() => {
  if (document.querySelector('main a[href^="/jobs/"]') === null) return;
  waiting.disconnect();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    document.documentElement.dataset.painted = performance.now();
  }));
});
waiting.observe(document, { childList: true, subtree: true });
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    seconds: float
    script_bytes: int  # as they were sent
    files: int
    shift: float


def main() -> int:
    chromium = installed_chromium()
    if chromium is None:
        sys.exit("Chromium is missing: run make setup")
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        token = _fill(home)
        with serving(home) as (url, _), sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
            views = [_visit(browser, url, token) for _ in range(ROUNDS + 1)][1:]  # the server has answered before
            browser.close()
    seconds = [view.seconds for view in views]
    script = max(view.script_bytes for view in views)
    print_figure(f"page, {JOBS:,} jobs: first view, slowest of {ROUNDS}", max(seconds), "s")
    print_figure("page: files of the first view", max(view.files for view in views), "files")
    report(f"page, {JOBS:,} jobs: first view", statistics.median(seconds), "s", at_most=BUDGET_SECONDS)
    report("page: compressed script of the first view", script / 1000, "kB", at_most=BUDGET_SCRIPT_KILOBYTES)
    report("page: layout shift of the first view", max(view.shift for view in views), "CLS", at_most=BUDGET_SHIFT)
    return 0


def _fill(home: Path) -> str:
    environ = {"STATIONMASTER_HOME": str(home)}
    with closing(LocalStation(load_settings(environ, folder=home), environ)) as station:
        add_jobs(station, steps=1_000)
        return station.tokens.create(NewToken(name="benchmark", user="me")).secret


def _visit(browser: Browser, url: str, token: str) -> View:
    """The first view of a browser that is signed in and has fetched nothing of it."""
    signing_in = browser.new_context()
    signing_in.request.post(f"{url}/api/session", data={"code": token})
    context = browser.new_context(storage_state=signing_in.storage_state(), viewport={"width": 1280, "height": 800})
    context.add_init_script(OBSERVE)
    page, answers = context.new_page(), list[Response]()
    page.on("response", lambda answer: answers.append(answer))
    page.goto(url)
    painted = page.locator("html[data-painted]").get_attribute("data-painted")
    assert painted is not None
    fetched = [answer for answer in answers if "/api/" not in answer.url]
    view = View(
        seconds=float(painted) / 1000,
        script_bytes=sum(_sent_bytes(answer) for answer in fetched if answer.request.resource_type == "script"),
        files=len(fetched),
        shift=_shift(page),
    )
    context.close()
    signing_in.close()
    return view


def _sent_bytes(answer: Response) -> int:
    return int(answer.request.sizes()["responseBodySize"])


def _shift(page: Page) -> float:
    page.wait_for_timeout(LATE_MILLISECONDS)
    return float(page.evaluate("window.shift"))


if __name__ == "__main__":
    sys.exit(main())
