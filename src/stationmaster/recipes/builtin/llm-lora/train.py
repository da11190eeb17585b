"""Train a LoRA of a causal language model on JSON lines: python3 train.py --dataset DIR --output DIR --model NAME …"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from stop_requests import Requests


def main(arguments: list[str]) -> int:
    """Train as the command line says; returns the exit status."""
    options = _parser().parse_args(arguments)
    requests = Requests()
    # One GPU is asked for, and one process cannot use more: with several in sight, the trainer would refuse to start.
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    from training import train  # takes seconds, in which a signal must find its handler, and reads the line above

    return train(options, requests)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--state", type=Path, required=True, help="where the trainer keeps its own checkpoints")
    parser.add_argument("--model", required=True)
    parser.add_argument("--name", default="adapter")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--schedule", default="cosine")
    parser.add_argument("--warmup-steps", type=int, default=20)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--max-grad-norm", type=float, default=1.0)
    parser.add_argument("--rank", type=int, default=16)
    parser.add_argument("--alpha", type=int, default=32)
    parser.add_argument("--dropout", type=float, default=0.05)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--prepare", choices=["ahead", "during"], default="ahead")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--save-every", type=int, default=250)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--gradient-checkpointing", action="store_true")
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
