"""Programs installed on a machine: a fake nvidia-smi, and a clock with an offset."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from stationmaster.simulator.machines import nvidia_smi
from stationmaster.simulator.machines.base import MachineSpec

_CLOCK = '''"""The machine's clock is wrong: Python programs started here read it so."""
import pathlib, time
_offset = float(pathlib.Path({offset_path!r}).read_text())
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _offset
time.time_ns = lambda: _time_ns() + int(_offset * 1e9)
'''
_DATE = """#!/bin/sh
# The machine's clock is wrong.
case "$*" in *-d*|*--date*|*-r*|*-f*) exec {date} "$@";; esac
now=$({date} +%s)
exec {date} -d "@$((now + {seconds}))" "$@"
"""


def gpu_config(spec: MachineSpec, *, marker: str | None) -> dict[str, object]:
    return {
        "marker": marker,
        "name": spec.gpu_name,
        "count": spec.gpu_count,
        "memory_mb": spec.gpu_memory_mb,
        "driver_version": spec.driver_version,
        "cuda": spec.cuda,
    }


def write_nvidia_smi(folder: Path, config: dict[str, object], *, python: str, seen_as: str | None = None) -> None:
    """Write a fake nvidia-smi with these GPUs to a folder, which the machine sees as `seen_as`."""
    (folder / "nvidia_smi.py").write_bytes(Path(nvidia_smi.__file__).read_bytes())
    (folder / "nvidia_smi.json").write_text(json.dumps(config))
    program = folder / "nvidia-smi"
    # -I and -S: it must start fast and must not see a wrong clock or another module path.
    source = shlex.quote(f"{seen_as or folder}/nvidia_smi.py")
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(python)} -I -S {source} "$@"\n')
    program.chmod(0o755)


def write_wrong_clock(folder: Path, programs: Path, seconds: float, *, seen_as: str | None = None) -> None:
    """Write a sitecustomize module that shifts Python's clock by `seconds`, and a matching `date`."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "offset").write_text(str(seconds))
    offset_path = f"{seen_as or folder}/offset"
    (folder / "sitecustomize.py").write_text(_CLOCK.format(offset_path=offset_path))
    date = programs / "date"
    date.write_text(_DATE.format(date="/bin/date", seconds=round(seconds)))
    date.chmod(0o755)
