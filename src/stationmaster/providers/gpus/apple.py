"""The GPU of a Mac with Apple's own processor, which uses the system's memory.

Written from the manual pages of `sysctl` and `vm_stat`; not tried on a Mac.
"""

from __future__ import annotations

import re

from stationmaster.model import Gpu, GpuMaker
from stationmaster.providers.gpus.tool import Ask, ToolFailed, ToolMissing

_GIB = 1024**3
_PAGE_SIZE = re.compile(r"page size of (\d+) bytes")
_AVAILABLE = re.compile(r"^Pages (?:free|inactive|speculative|purgeable):\s+(\d+)\.", re.MULTILINE)


async def find_apple_gpu(ask: Ask) -> list[Gpu]:
    """The processor's GPU; none on other computers. Raises ToolMissing and ToolFailed."""
    try:
        processor, memory = (await ask("sysctl", "-n", "machdep.cpu.brand_string", "hw.memsize")).splitlines()
    except (ToolFailed, ValueError):
        raise ToolMissing("sysctl") from None  # that of Linux knows neither
    if not processor.startswith("Apple") or not memory.isdigit():
        raise ToolMissing("sysctl")
    free = parse_available_bytes(await ask("vm_stat"))
    total_gib, free_gib = int(memory) / _GIB, free / _GIB
    return [Gpu(id="0", number=0, maker=GpuMaker.APPLE, name=processor, total_gib=total_gib, free_gib=free_gib)]


def parse_available_bytes(text: str) -> int:
    """Memory that programs can have, from vm_stat: free pages, and those that hold only copies."""
    size = _PAGE_SIZE.search(text)
    if size is None:
        raise ToolFailed(f"vm_stat answered what is not understood: {text.strip()[:100]!r}")
    return int(size[1]) * sum(int(pages) for pages in _AVAILABLE.findall(text))
