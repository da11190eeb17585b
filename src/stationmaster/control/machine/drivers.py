"""Container engines and GPU drivers that a recipe needs of a machine's system: reported where they are missing.

Nothing is installed blindly: only on a machine of one's own, by root, and where `bootstrap.install_drivers` says so.
In a rented container neither would help, for they belong to the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stationmaster.control.flow.policy import Policy
from stationmaster.errors import CommandFailed, Unreachable
from stationmaster.model import Rental
from stationmaster.recipes.schema import Recipe
from stationmaster.remote.base import Remote
from stationmaster.store.writes import NewEvent

_DRIVER = "nvidia-driver"
_OWN_MACHINES = "ssh"
_INSTALL_SECONDS = 1800.0
_GIB = 1024**3
_INSTALL = """
set -eu
fail() { echo "$1" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "only root may install it; log in as root, or install it yourself"
export DEBIAN_FRONTEND=noninteractive
apt_packages= dnf_packages= driver=
for part in "$@"; do
  case $part in
    docker) apt_packages="$apt_packages docker.io" dnf_packages="$dnf_packages moby-engine" ;;
    podman) apt_packages="$apt_packages podman" dnf_packages="$dnf_packages podman" ;;
    nvidia-driver)
      grep -qs 0x10de "${STATIONMASTER_SYS:-/sys}"/bus/pci/devices/*/vendor || fail "there is no NVIDIA GPU in it"
      driver=yes dnf_packages="$dnf_packages akmod-nvidia" ;;
    *) fail "nobody knows how to install $part" ;;
  esac
done
if command -v apt-get >/dev/null; then
  apt() { apt-get -q -o DPkg::Lock::Timeout=600 "$@"; }
  apt update
  if [ -n "$driver" ] && apt-cache show nvidia-driver >/dev/null 2>&1; then
    apt_packages="$apt_packages nvidia-driver"
  elif [ -n "$driver" ]; then  # Ubuntu names its driver packages by version
    apt install -y ubuntu-drivers-common
    ubuntu-drivers install --gpgpu
  fi
  [ -z "$apt_packages" ] || apt install -y $apt_packages
elif command -v dnf >/dev/null; then
  dnf install -y $dnf_packages
else
  fail "neither apt-get nor dnf is there"
fi
case " $* " in *" docker "*) systemctl enable --now docker >/dev/null 2>&1 || true ;; esac
[ -z "$driver" ] || modprobe nvidia >/dev/null 2>&1 || true
"""


def missing_parts(facts: dict[str, Any], recipe: Recipe) -> tuple[str, ...]:
    """Parts of the system that the recipe needs and the machine lacks; empty where the machine did not report them."""
    tools = facts.get("tools")
    if tools is None:
        return ()
    lacks_driver = recipe.needs.gpus > 0 and not facts.get("gpus") and not facts.get("driver")
    lacks_engine = recipe.runtime != "host" and recipe.runtime not in tools
    return (*([_DRIVER] if lacks_driver else []), *([recipe.runtime] if lacks_engine else []))


def may_install(rental: Rental, policy: Policy) -> bool:
    return policy.bootstrap.install_drivers and rental.provider == _OWN_MACHINES


def advice(rental: Rental, policy: Policy) -> str:
    """What to do about it, appended to the sentence that names the missing parts."""
    if rental.provider != _OWN_MACHINES or policy.bootstrap.install_drivers:
        return ""
    return "; install it there, or let root do it with bootstrap.install_drivers"


async def install(remote: Remote, parts: Sequence[str]) -> None:
    """Install the parts with the machine's package manager, as root. Safe to repeat. Raises CommandFailed."""
    argv = ["sh", "-s", "--", *parts]
    done = await remote.run(argv, input=_INSTALL.encode(), timeout=_INSTALL_SECONDS)
    if done.exit_status is None:
        raise Unreachable(f"the connection was lost while {', '.join(parts)} was being installed")
    if done.exit_status != 0:
        last_words = done.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["nobody knows why"]
        raise CommandFailed(f"{', '.join(parts)} is missing and could not be installed: {last_words[0]}")


def machine_checked_event(facts: dict[str, Any], missing: Sequence[str]) -> NewEvent:
    """The event that records what the machine has."""
    free = facts.get("disk_free_bytes")
    payload = {
        "gpus": [gpu.get("name") for gpu in facts.get("gpus") or []],
        "driver": facts.get("driver"),
        "cuda": facts.get("cuda"),
        "tools": list(facts.get("tools") or []),
        "disk_free_gib": None if free is None else round(free / _GIB, 1),
        "missing": list(missing),
    }
    return NewEvent(kind="machine_checked", payload=payload)
