"""A fake nvidia-smi: its GPU load is the CPU load of the machine's processes.

This file is also copied to machines as the program itself, so it only uses the standard library.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

_CLOCK_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
_SAMPLE_SECONDS = 0.1
_FRESH_SECONDS = 30.0


def main(arguments: list[str], config_path: Path) -> int:
    config: dict[str, Any] = json.loads(config_path.read_text())
    gpus = read_gpus(config, config_path.with_suffix(".last"))
    options = dict(part.split("=", 1) for part in arguments if part.startswith("--") and "=" in part)
    if "-L" in arguments or "--list-gpus" in arguments:
        for gpu in gpus:
            print(f"GPU {gpu['index']}: {gpu['name']} (UUID: {gpu['uuid']})")
    elif "--query-gpu" in options:
        _print_query(gpus, options["--query-gpu"].split(","), options.get("--format", "csv"))
    elif "--query-compute-apps" in options:
        _print_query([], options["--query-compute-apps"].split(","), options.get("--format", "csv"))
    else:
        _print_table(config, gpus)
    return 0


def read_gpus(config: dict[str, Any], last_path: Path) -> list[dict[str, Any]]:
    """Current values of each GPU; the load since the last reading, or over a tenth of a second."""
    busy, resident_mb = _load(config.get("marker"), last_path)
    total = int(config["memory_mb"])
    gpus = []
    for index in range(int(config["count"])):
        percent = min(100.0, max(0.0, busy * 100.0 - 100.0 * index))
        used = min(total * 0.97, 3.0 * resident_mb) if percent >= 1 else 4.0
        gpus.append(
            {
                "index": index,
                "name": product_name(config["name"]),
                "uuid": f"GPU-51d00000-0000-0000-0000-{index:012d}",
                "driver_version": config["driver_version"],
                "memory.total": total,
                "memory.used": round(used),
                "memory.free": total - round(used),
                "utilization.gpu": round(percent),
                "utilization.memory": round(percent * 0.6),
                "temperature.gpu": round(34 + percent * 0.4),
                "power.draw": round(22 + percent * 3.1, 2),
                "power.limit": 350.0,
                "fan.speed": round(30 + percent * 0.5),
                "clocks.sm": 2520 if percent >= 1 else 210,
                "clocks.mem": 10501 if percent >= 1 else 405,
                "pstate": "P2" if percent >= 1 else "P8",
                "compute_cap": config.get("compute_cap", "8.9"),
                "ecc.errors.uncorrected.volatile.total": 0,
            }
        )
    return gpus


def product_name(name: str) -> str:
    return f"NVIDIA GeForce {name}" if name.startswith("RTX") and not name.startswith("RTX A") else f"NVIDIA {name}"


def _load(marker: str | None, last_path: Path) -> tuple[float, float]:
    """CPU seconds per second, and resident megabytes, of the machine's processes."""
    before = _read_last(last_path)
    now, seconds, resident = time.time(), *_sum_processes(marker)
    if before is None or not _SAMPLE_SECONDS / 2 < now - before[0] < _FRESH_SECONDS:
        before = (now, seconds)
        time.sleep(_SAMPLE_SECONDS)
        now, seconds, resident = time.time(), *_sum_processes(marker)
    _write_last(last_path, now, seconds)
    return max(0.0, seconds - before[1]) / (now - before[0]), resident


def _sum_processes(marker: str | None) -> tuple[float, float]:
    seconds, resident = 0.0, 0.0
    for name in os.listdir("/proc"):  # noqa: PTH208 (names only)
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            if not _is_ours(name, marker):
                continue
            fields = _read_process(name, "stat").rpartition(b")")[2].split()
        except OSError:
            continue
        # User and system time of the process and its ended children, so that short programs count.
        seconds += sum(int(field) for field in fields[11:15]) / _CLOCK_TICKS
        resident += int(fields[21]) * _PAGE_BYTES / 1e6
    return seconds, resident


def _is_ours(process: str, marker: str | None) -> bool:
    """Without a marker, in a pid namespace, all processes are ours."""
    if marker is None:
        return True
    mark, environment = f"STATIONMASTER_MACHINE={marker}".encode(), _read_process(process, "environ")
    return mark in environment and mark in environment.split(b"\0")


def _read_process(process: str, name: str) -> bytes:
    with open(f"/proc/{process}/{name}", "rb") as file:  # noqa: PTH123 (a Path takes longer than the rest)
        return file.read()


def _read_last(path: Path) -> tuple[float, float] | None:
    try:
        moment, seconds = json.loads(path.read_text())
        return float(moment), float(seconds)
    except (OSError, ValueError, TypeError):
        return None


def _write_last(path: Path, moment: float, seconds: float) -> None:
    try:
        written = path.with_suffix(f".{os.getpid()}")
        written.write_text(json.dumps([moment, seconds]))
        written.replace(path)
    except OSError:
        pass  # a full disk: the next reading samples again


def _print_query(rows: list[dict[str, Any]], fields: list[str], form: str) -> None:
    units = {"memory": " MiB", "utilization": " %", "power": " W", "clocks": " MHz", "fan": " %"}
    if "noheader" not in form:
        print(", ".join(fields))
    for row in rows:
        values = []
        for field in (name.strip() for name in fields):
            unit = "" if "nounits" in form else units.get(field.split(".")[0], "")
            values.append(f"{row[field]}{unit}" if field in row else "[N/A]")
        print(", ".join(values))


def _print_table(config: dict[str, Any], gpus: list[dict[str, Any]]) -> None:
    version = config["driver_version"]
    print(f"| NVIDIA-SMI {version}   Driver Version: {version}   CUDA Version: {config['cuda']} |")
    for gpu in gpus:
        memory = f"{gpu['memory.used']}MiB / {gpu['memory.total']}MiB"
        print(f"| {gpu['index']}  {gpu['name']}  {gpu['temperature.gpu']}C  {memory}  {gpu['utilization.gpu']}% |")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], Path(__file__).with_suffix(".json")))
