"""Checks of the settings and of the home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from stationmaster.settings import Settings
from stationmaster.settings.private_home import is_shared_folder, open_to_others, tighten_home
from stationmaster.station.checks import CheckResult, failed, passed
from stationmaster.station.local.installation import Installation
from stationmaster.station.local.trusting import files_in_use


def settings_results(installation: Installation) -> Iterator[CheckResult]:
    settings = installation.settings
    yield passed("settings", f"home {settings.home}, provider {settings.provider}")
    for file in files_in_use(installation.environ, settings.home, Path.cwd()):
        yield passed("settings", f"read from {file}")


def home_result(settings: Settings) -> CheckResult:
    """Whether others may read the home; what is this user's own is tightened first, as at the start of any command."""
    home = settings.home
    was = len(open_to_others(home)) if home.is_dir() else 0
    tighten_home(home)
    if left := open_to_others(home) if home.is_dir() else []:
        names = ", ".join("the home" if path == home else path.name for path in left)
        hint = "choose a folder of your own: --home" if is_shared_folder(home) else f'chown -R "$USER" {home}'
        return failed("home", f"other users have rights to {names}", hint)
    return passed("home", "private now; other users had rights to it before" if was else "private")
