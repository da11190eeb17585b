"""A training that knows nothing of Stationmaster: it prints its loss and saves checkpoints.

Usage: train.py OUTPUT STEPS SECONDS_PER_STEP
"""

import json
import struct
import sys
import time
from pathlib import Path


def save(path: Path) -> None:
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    part = path.with_name(path.name + ".part")
    part.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<f", 0.5))
    part.replace(path)


def main(output: Path, steps: int, seconds: float) -> None:
    output.mkdir(parents=True, exist_ok=True)
    for step in range(1, steps + 1):
        print(f"step {step}/{steps} loss: {1 / step:.4f}", flush=True)
        time.sleep(seconds)
        if step % 10 == 0:
            save(output / f"model-{step:06d}.safetensors")
    save(output / "model.safetensors")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
