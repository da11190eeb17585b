"""Learns three numbers from the bytes of the pictures; put your own training here. Python 3.8 or newer, no packages.

What a trainer should do for Stationmaster: print steps and loss, save checkpoints with the step in their name by an
atomic rename, continue from a checkpoint, and save before it exits on SIGTERM.
"""

from __future__ import annotations

import json
import pathlib
import signal
import struct
import sys


def main() -> None:
    config = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
    output = pathlib.Path(config["output"])
    output.mkdir(parents=True, exist_ok=True)
    wanted = target(pathlib.Path(config["dataset"]))
    resumed = next((word.partition("=")[2] for word in sys.argv[2:] if word.startswith("--resume=")), None)
    weights, first = read_weights(pathlib.Path(resumed)) if resumed else ([0.0, 0.0, 0.0], 0)

    stopping = []
    signal.signal(signal.SIGTERM, lambda *_: stopping.append(True))
    for step in range(first + 1, config["steps"] + 1):
        errors = [weights[index] - wanted[index] for index in range(3)]
        weights = [weights[index] - config["learning_rate"] * errors[index] for index in range(3)]
        loss = sum(error * error for error in errors)
        print(f"step {step}/{config['steps']} loss: {loss:.6f}", flush=True)
        if step % config["save_every"] == 0 or stopping:
            save(output / f"{config['name']}-{step:06d}.safetensors", weights, step)
        if stopping:
            sys.exit(1)
    save(output / f"{config['name']}.safetensors", weights, config["steps"])


def target(dataset: pathlib.Path) -> list[float]:
    """Three means over the bytes of all pictures."""
    data = b"".join(
        path.read_bytes() for path in sorted(dataset.rglob("*")) if path.suffix in (".png", ".jpg", ".webp")
    )
    return [sum(data[offset::3]) / (255 * max(1, len(data[offset::3]))) for offset in range(3)]


def save(path: pathlib.Path, weights: list[float], step: int) -> None:
    tensor = {"colour": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}, "__metadata__": {"step": str(step)}}
    header = json.dumps(tensor).encode()
    part = path.with_name(path.name + ".part")
    part.write_bytes(struct.pack("<Q", len(header)) + header + struct.pack("<3f", *weights))
    part.replace(path)  # a reader sees the whole file or none


def read_weights(path: pathlib.Path) -> tuple[list[float], int]:
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + size])
    return list(struct.unpack("<3f", data[8 + size : 20 + size])), int(header["__metadata__"]["step"])


if __name__ == "__main__":
    main()
