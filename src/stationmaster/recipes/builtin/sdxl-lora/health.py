"""Say whether this machine can train: everything that sd-scripts imports, and one step of the optimizer on the GPU."""

from __future__ import annotations

import importlib
import sys

TRAINER = ("library.train_util", "library.sdxl_train_util", "library.sdxl_lpw_stable_diffusion", "networks.lora")


def main(trainer: str, device: str) -> None:
    sys.path.insert(0, trainer)
    for name in ("torch", "torchvision", "cv2", "accelerate", *TRAINER, "sdxl_train_network"):
        importlib.import_module(name)
    take_a_step(device)
    print(f"sd-scripts in {trainer} is ready on {device}")


def take_a_step(device: str) -> None:
    """bitsandbytes can be imported without the library for this CUDA version; only its use shows that."""
    torch = importlib.import_module("torch")
    bitsandbytes = importlib.import_module("bitsandbytes")
    weight = torch.nn.Parameter(torch.ones(64, 256, device=device))
    weight.grad = torch.ones_like(weight)
    bitsandbytes.optim.AdamW8bit([weight]).step()
    if not bool((weight < 1).all()):
        raise RuntimeError("the 8-bit optimizer changes nothing on this machine")


if __name__ == "__main__":
    main(*sys.argv[1:])
