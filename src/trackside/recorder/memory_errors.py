"""Find lines in a training's log that report that it ran out of memory."""

from __future__ import annotations

import re

_LONGEST_LINE = 2000

#: Texts of which every such line holds one: searching for them costs almost nothing.
_MARKS = (
    b"ut of memory",
    b"OutOfMemory",
    b"OUT_OF_MEMORY",
    b"MemoryError",
    b"MemoryAllocation",
    b"OOM",
    b"RESOURCE_EXHAUSTED",
    b"ResourceExhausted",
    b"_ALLOC_FAILED",
    b"ocate memory",
    b"DefaultCPUAllocator",
)

#: Whole reports only: advice on how to avoid the error, and code that handles it, are not the error.
_REPORTS = re.compile(
    rb"OutOfMemoryError(?:: \S|$)"
    rb"|\b(?:CUDA|HIP|XPU|MPS backend) out of memory(?:\. Tried to allocate| \(MPS allocated|[.!]?$)"
    rb"|[Ee]rror(?: running job)?: (?:CUDA|HIP|MPS|XPU|GPU)[^.\n]{0,40}out of memory"
    rb"|\b(?:CUDA|HIP|Cuda|NCCL|cuDNN) ?(?:driver |runtime )?(?:error|failure)(?: \d+)?:? '?out of memory"
    rb"|\b(?:CUDA_ERROR_OUT_OF_MEMORY|hipErrorOutOfMemory|cudaErrorMemoryAllocation)\b"
    rb"|memory allocation failed with OOM"
    rb"|\bOOM during training step(?:, skipping batch| \d+ times)"
    rb"|\bOOM when allocating\b"
    rb"|\b(?:RESOURCE_EXHAUSTED|ResourceExhaustedError): .{0,60}(?:OOM|[Mm]emory)"
    rb"|\bCU[A-Z]{2,8}_STATUS_ALLOC_FAILED\b"
    rb"|^(?:\[\w+\]: ?)?(?:[\w.]+\.)?_?(?:Array)?MemoryError(?:: \S|$)"
    rb"|DefaultCPUAllocator: (?:can't allocate|not enough) memory"
    rb"|\[Errno 12\] Cannot allocate memory"
)


def find_memory_error(data: bytes) -> str | None:
    """Return the first line that reports a lack of memory; None if there is none.

    >>> find_memory_error(b"step 7\\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB\\n")
    'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB'
    >>> find_memory_error(b"a BEDROOM; set this to avoid CUDA out of memory errors\\n") is None
    True
    """
    places = sorted(place for place in map(data.find, _MARKS) if place >= 0)
    if not places:
        return None
    # From the line of the first mark on: a flood of lines that hold none is not split.
    begin = max(data.rfind(b"\n", 0, places[0]), data.rfind(b"\r", 0, places[0])) + 1
    for line in re.split(rb"[\r\n]+", data[begin:]):
        text = line[:_LONGEST_LINE].strip()
        if _REPORTS.search(text):
            return text.decode("utf-8", "replace")
    return None
