"""Check of the SSH key for rented machines."""

from __future__ import annotations

import stat

from stationmaster.control.wiring.providers import ssh_key_path
from stationmaster.errors import ConfigInvalid
from stationmaster.providers.vastai.ssh_keys import read_pair, require_matching
from stationmaster.settings import Settings
from stationmaster.station.checks import CheckResult, failed, passed, warned

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def key_result(settings: Settings) -> CheckResult:
    path = ssh_key_path(settings)
    rents = bool(settings.vastai.keys_by_account())
    if not rents and not path.exists():
        return passed("key", "none, and none needed: no account that rents machines is set up")
    try:
        pair = read_pair(path)
        require_matching(pair)
    except ConfigInvalid as problem:
        return failed("key", str(problem), problem.hint or "") if rents else warned("key", str(problem))
    if pair.private_path.stat().st_mode & _OTHERS:
        return warned("key", f"other users have rights to {path}: ssh refuses such a key", f"chmod 600 {path}")
    return passed("key", f"{pair.public_key.split()[0]} at {path}")
