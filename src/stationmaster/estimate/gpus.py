"""What is known of GPUs by their names: how fast they train, and how much memory they have."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Time of a training step relative to an RTX 4090. Rough values for 16-bit trainings that fit into GPU memory: good
# enough to compare offers and to set limits. Estimates are always shown with their spread.
GPU_FACTORS: Mapping[str, float] = {
    "B200": 0.25,
    "H200": 0.40,
    "H100 SXM": 0.42,
    "H100": 0.52,
    "GH200": 0.42,
    "A100 SXM4": 0.80,
    "A100": 0.88,
    "RTX PRO 6000": 0.65,
    "RTX 5090": 0.70,
    "RTX 5080": 1.25,
    "RTX 4090": 1.00,
    "RTX 4080": 1.45,
    "RTX 4070": 2.10,
    "RTX 3090": 1.90,
    "RTX 3080": 2.30,
    "RTX 3060": 4.20,
    "RTX 6000 ADA": 1.05,
    "RTX 6000ADA": 1.05,
    "RTX A6000": 1.80,
    "RTX A5000": 2.20,
    "L40S": 1.00,
    "L40": 1.20,
    "L4": 3.00,
    "A40": 1.90,
    "A10": 2.40,
    "V100": 2.50,
    "T4": 6.50,
}
REFERENCE_GPU = "RTX 4090"

# Memory in GiB as the cards are sold; those that are sold with several sizes are left out.
GPU_MEMORY_GIB: Mapping[str, float] = {
    "B200": 180,
    "H200": 140,
    "H100 SXM": 80,
    "RTX PRO 6000": 96,
    "RTX 5090": 32,
    "RTX 5080": 16,
    "RTX 4090": 24,
    "RTX 4080": 16,
    "RTX 3090": 24,
    "RTX 6000 ADA": 48,
    "RTX 6000ADA": 48,
    "RTX A6000": 48,
    "RTX A5000": 24,
    "L40S": 48,
    "L40": 48,
    "L4": 24,
    "A40": 48,
    "A10": 24,
    "T4": 16,
}


def gpu_factor(name: str) -> float | None:
    """A GPU's time per step relative to an RTX 4090; None if it is not in the table.

    >>> gpu_factor("NVIDIA GeForce RTX 3090 Ti"), gpu_factor("H100_SXM"), gpu_factor("Voodoo 2")
    (1.9, 0.42, None)
    """
    return _of_longest_name(GPU_FACTORS, name)


def gpu_memory_gib(name: str) -> float | None:
    """The memory of a GPU by its name; None if it is not in the table.

    >>> gpu_memory_gib("NVIDIA GeForce RTX 4090"), gpu_memory_gib("A100 SXM4")
    (24, None)
    """
    return _of_longest_name(GPU_MEMORY_GIB, name)


def is_as_fast(gpu: str | None, as_this: str | None) -> bool:
    """Whether a GPU is the same as another or known to be at least as fast; True if no GPU is needed.

    >>> is_as_fast("RTX 5090", "RTX 4090"), is_as_fast("RTX 3090", "RTX 4090"), is_as_fast("Voodoo 2", "RTX 4090")
    (True, False, False)
    """
    if as_this is None or same_gpu(gpu, as_this):
        return True
    ours, others = gpu_factor(gpu or ""), gpu_factor(as_this)
    return ours is not None and others is not None and ours <= others


def same_gpu(one: str | None, other: str | None) -> bool:
    """Whether two names mean the same GPU, ignoring case and separators."""
    return _words(one or "") == _words(other or "")


def _of_longest_name(table: Mapping[str, float], name: str) -> float | None:
    words = f" {_words(name)} "
    fitting = [known for known in table if f" {known} " in words]
    return table[max(fitting, key=len)] if fitting else None


def _words(name: str) -> str:
    return re.sub(r"[^A-Z0-9]+", " ", name.upper()).strip()
