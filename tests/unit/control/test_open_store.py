"""Opening the store of a home."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from stationmaster.config import load_settings
from stationmaster.control.wiring.open_store import open_store


def test_several_commands_may_open_a_home_at_the_same_moment(tmp_path: Path) -> None:
    settings = load_settings({"STATIONMASTER_HOME": str(tmp_path / "home")})

    def open_often() -> None:
        for _ in range(25):
            open_store(settings).close()

    open_store(settings).close()
    with ThreadPoolExecutor(4) as threads:
        for opening in [threads.submit(open_often) for _ in range(4)]:
            opening.result()
    assert not (tmp_path / "home" / ".writable").exists()
