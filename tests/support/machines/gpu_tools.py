"""Stand-ins for the makers' tools: programs on the PATH that print what the real ones document."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

UUIDS = ("GPU-11111111-aaaa-bbbb-cccc-000000000001", "GPU-22222222-aaaa-bbbb-cccc-000000000002")

_NVIDIA_SMI = """#!{python} -I
import json, sys
gpus = json.load(open({facts!r}))
query = next((each[12:].split(",") for each in sys.argv if each.startswith("--query-gpu=")), None)
if query is None:
    print("| NVIDIA-SMI 580.159.03   Driver Version: 580.159.03   CUDA Version: 13.0 |")
    sys.exit(0)
only = next((each[5:].split(",") for each in sys.argv if each.startswith("--id=")), None)
for gpu in gpus:
    if only is None or gpu["uuid"] in only:
        print(", ".join(str(gpu.get(field, "[N/A]")) for field in query))
"""


def nvidia_gpu(number: int = 0, *, total: int = 24564, free: int | None = None, **facts: Any) -> dict[str, Any]:
    """A GPU as nvidia-smi describes it, with memory in MiB."""
    left = total if free is None else free
    return {
        "index": number,
        "uuid": UUIDS[number],
        "name": "NVIDIA GeForce RTX 4090",
        "memory.total": total,
        "memory.free": left,
        "memory.used": total - left,
        "mig.mode.current": "[N/A]",
        "utilization.gpu": 0,
        **facts,
    }


def write_nvidia_smi(folder: Path, gpus: Sequence[Mapping[str, Any]]) -> Path:
    """Put an nvidia-smi into the folder that lists these GPUs; calling it again changes them."""
    facts = folder / "nvidia-gpus.json"
    folder.mkdir(parents=True, exist_ok=True)
    facts.write_text(json.dumps([dict(gpu) for gpu in gpus]))
    return write_tool(folder, "nvidia-smi", _NVIDIA_SMI.format(python=sys.executable, facts=str(facts)))


def write_tool(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(script)
    path.chmod(0o755)
    return folder
