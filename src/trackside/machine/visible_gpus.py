"""Which GPUs this process may use: on a computer with several jobs, each has its own."""

from __future__ import annotations

from typing import Mapping, Optional, Tuple

CUDA, HIP = "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"

Visible = Optional[Tuple[str, ...]]
"""The ids of the GPUs that may be used; None: all, or unknown."""


def visible_nvidia_gpus(environment: Mapping[str, str]) -> Visible:
    """Return the UUIDs in CUDA_VISIBLE_DEVICES.

    Numbers say nothing here: CUDA counts the fastest GPU first, nvidia-smi the one on the first bus.

    >>> visible_nvidia_gpus({CUDA: "GPU-5f2b, GPU-77aa"}), visible_nvidia_gpus({CUDA: ""})
    (('GPU-5f2b', 'GPU-77aa'), ())
    >>> visible_nvidia_gpus({CUDA: "0,1"}), visible_nvidia_gpus({})
    (None, None)
    """
    ids = _ids(environment.get(CUDA))
    return ids if ids is None or all(each.startswith("GPU-") for each in ids) else None


def visible_amd_gpus(environment: Mapping[str, str]) -> Visible:
    """Return the numbers in HIP_VISIBLE_DEVICES.

    >>> visible_amd_gpus({HIP: "2"}), visible_amd_gpus({HIP: ""}), visible_amd_gpus({})
    (('2',), (), None)
    """
    ids = _ids(environment.get(HIP))
    return ids if ids is None or all(each.isdigit() for each in ids) else None


def _ids(text: str | None) -> Visible:
    return None if text is None else tuple(each.strip() for each in text.split(",") if each.strip())
