"""The start script of rented machines, and the host keys that it prints."""

from __future__ import annotations

import re
import shlex
from functools import cache
from importlib import resources

from stationmaster.errors import ConfigInvalid

SCRIPT_LIMIT = 4096
"""The service's limit for the characters of onstart and arguments together."""
_BLOCK = re.compile(r"sm-host-keys begin\s*\n(.*?)sm-host-keys end", re.DOTALL)
_KEY = re.compile(r"sm-host-key ([a-z0-9@.-]+ [A-Za-z0-9+/]+=*)")


_LONGEST_LOOK_SECONDS = 15.0


def guard_environment(*, idle_seconds: float, abandon_seconds: float) -> dict[str, str]:
    """The guard's times: when a machine without contact stops itself, and destroys itself if stopping is refused.

    It looks four times within the idle time, and at least every 15 seconds.
    """
    return {
        "STATIONMASTER_GUARD_IDLE": str(round(idle_seconds)),
        "STATIONMASTER_GUARD_ABANDON": str(round(abandon_seconds)),
        "STATIONMASTER_GUARD_LOOK": f"{min(_LONGEST_LOOK_SECONDS, idle_seconds / 4):g}",
    }


def onstart_script(public_key: str) -> str:
    """The start script that authorizes this key. Raises ConfigInvalid for an invalid or too long key."""
    line = " ".join(public_key.split())
    if not line.startswith(("ssh-", "ecdsa-", "sk-")) or len(line.split()) < 2:
        raise ConfigInvalid("the public SSH key is invalid", hint="run `stationmaster keys setup`")
    script = _template().replace("@PUBLIC_KEY@", shlex.quote(line))
    if len(script) > SCRIPT_LIMIT:
        raise ConfigInvalid(
            f"the public SSH key is too long: {len(line)} characters",
            hint="run `stationmaster keys setup`, which creates a short one",
        )
    return script


def host_keys_in(log: str) -> tuple[str, ...]:
    """The host keys that a machine printed last, one OpenSSH line each; none until a block is complete.

    >>> host_keys_in("boot\\nsm-host-keys begin\\nsm-host-key ssh-ed25519 AAAAC3\\nsm-host-keys end\\n")
    ('ssh-ed25519 AAAAC3',)
    """
    blocks = _BLOCK.findall(log.replace("\r", ""))
    return tuple(_KEY.findall(blocks[-1])) if blocks else ()


@cache
def _template() -> str:
    text = resources.files(__package__).joinpath("onstart.sh").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return "#!/bin/sh\n" + "\n".join(lines) + "\n"
