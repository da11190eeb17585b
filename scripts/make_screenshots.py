"""Writes the pictures of docs/images: the page on made-up trainings, in real Chromium.

python -m scripts.make_screenshots          # write the pictures
python -m scripts.make_screenshots --serve  # only serve the made-up trainings, to look at them
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser

from stationmaster.cli.logging import quiet_logging
from tests.support.browser.exhibition import Exhibition, exhibition
from tests.support.browser.visitor import Visitor, chromium, visiting

IMAGES = Path(__file__).parents[1] / "docs/images"
_COLOURS = 192
_SETTLE_MS = 1_500


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture: of a page's address, so many pixels large."""

    name: str
    path: str
    width: int = 1280
    height: int = 900


_RUNNING, _FINISHED, _EARLIER, _FAILED = "hills-v3-4c1e", "hills-v2-91ab", "hills-v1-3d7f", "portraits-b601"
SHOTS = (
    Shot(name="fleet", path="/"),
    Shot(name="job", path=f"/jobs/{_RUNNING}", height=1100),
    Shot(name="analysis", path=f"/jobs/{_FINISHED}?tab=analysis#about", height=1000),
    Shot(name="new-training", path=f"/new?retry={_FAILED}&apply=all", height=1000),
    Shot(name="compare", path=f"/compare?jobs={_RUNNING}&jobs={_FINISHED}&jobs={_EARLIER}", height=1000),
)
NARROW = (
    Shot(name="fleet-narrow", path="/", width=380, height=800),
    Shot(name="job-narrow", path=f"/jobs/{_RUNNING}", width=380, height=800),
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--serve", action="store_true", help="only serve, until Ctrl-C")
    options.add_argument("--only", metavar="NAME", help="write only the pictures of this name")
    asked = options.parse_args()
    quiet_logging()
    with tempfile.TemporaryDirectory(prefix="exhibition-") as folder, exhibition(Path(folder)) as opened:
        if asked.serve:
            _wait(opened)
            return
        with chromium() as browser:
            for written in _write(browser, opened, only=asked.only):
                print(f"{written.relative_to(IMAGES.parents[1])}  {written.stat().st_size / 1000:.0f} kB")


def _wait(opened: Exhibition) -> None:
    print(f"sign in: {opened.link}")
    print(f"or with the token {opened.token} at {opened.url}/sign-in#{opened.token}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what was started also ends with this one
    with contextlib.suppress(KeyboardInterrupt):
        signal.pause()


def _write(browser: Browser, opened: Exhibition, *, only: str | None) -> Iterator[Path]:
    IMAGES.mkdir(exist_ok=True)
    wanted = [shot for shot in (*SHOTS, *NARROW) if only in (None, shot.name)]
    for shot in wanted:
        for colours in ("light", "dark") if shot in SHOTS else ("light",):
            size = {"width": shot.width, "height": shot.height}
            about = {"viewport": size, "color_scheme": colours, "reduced_motion": "reduce", "locale": "en-US"}
            with visiting(browser, opened.url, timezone_id="UTC", **about) as visitor:
                visitor.sign_in(opened.token)
                target = IMAGES / (f"{shot.name}-{colours}.png" if shot in SHOTS else f"{shot.name}.png")
                _take(visitor, shot, target)
                yield target


def _take(visitor: Visitor, shot: Shot, target: Path) -> None:
    visitor.open(shot.path)
    visitor.page.get_by_role("heading", level=1).first.wait_for()
    visitor.page.wait_for_timeout(_SETTLE_MS)  # charts and pictures arrive after the heading; streams never end
    visitor.page.screenshot(path=target)
    with Image.open(target) as taken:
        # A palette makes the file a third as large; the page has few colours, its sample pictures lose a little.
        taken.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE).save(target, optimize=True)


if __name__ == "__main__":
    main()
