"""Train a low-rank adapter of a small fixed autoencoder on the CPU: python3 train.py --dataset DIR --output DIR …"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import faults

MISSING_PACKAGES = 3  # exit status of --check


def main(arguments: list[str]) -> int:
    """Do what the command line says; returns the exit status."""
    # One thread: this training is small, and the machine may be shared. NumPy reads these when it is imported.
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
        os.environ[variable] = "1"
    options = _parser().parse_args(arguments)
    if options.check:
        return check_packages()
    if options.evaluate:
        return evaluate(options)
    return train(options)


def check_packages() -> int:
    """Say whether the packages that the training needs are here. Importing them would take ten times as long."""
    for name in ("numpy", "PIL"):
        if find_spec(name) is None:
            sys.stderr.write(f"No module named '{name}': this Python ({sys.executable}) cannot train.\n")
            sys.stderr.write(f"hint: run {sys.executable} -m pip install numpy pillow\n")
            return MISSING_PACKAGES
    print(f"NumPy and Pillow are here, Python {sys.version.split()[0]}")
    return 0


def evaluate(options: argparse.Namespace) -> int:
    """Print the loss of a saved adapter over the dataset, computed anew and as stored."""
    from training import recompute_loss  # imports NumPy: only once its threads are limited

    loss, stored = recompute_loss(options.evaluate, options.dataset)
    print(json.dumps({"loss": loss, "stored_loss": stored}))
    return 0


def train(options: argparse.Namespace) -> int:
    """Run the training."""
    from training import Settings, run  # imports NumPy: only once its threads are limited

    chosen = vars(options)
    return run(Settings(**{name: chosen[name] for name in Settings.__dataclass_fields__}))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="only say whether NumPy and Pillow are here")
    parser.add_argument("--evaluate", type=Path, metavar="ADAPTER", help="only compute the loss of a saved adapter")
    parser.add_argument("--dataset", type=Path, default=Path("dataset"))
    parser.add_argument("--output", type=Path, default=Path("output"))
    parser.add_argument("--name", type=_file_name, default="tiny")
    parser.add_argument("--trigger", default="")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seconds-per-step", type=float, default=0.1)
    parser.add_argument("--rank", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=0.01)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--save-every", type=int, default=100)
    parser.add_argument("--sample-every", type=int, default=100)
    parser.add_argument("--keep-saves", type=int, default=4)
    parser.add_argument("--resolution", type=int, default=48)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--optimizer", choices=("adam", "sgd"), default="adam")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--worker-memory-mb", type=int, default=0)
    parser.add_argument("--ema", action="store_true")
    parser.add_argument("--model-memory-mb", type=int, default=0)
    parser.add_argument("--picture-memory-mb", type=float, default=0.0)
    parser.add_argument("--checkpoint-mb", type=int, default=0)
    parser.add_argument("--resume", type=Path, metavar="CHECKPOINT")
    parser.add_argument("--fault", choices=faults.KINDS, default="none")
    parser.add_argument("--fault-at", type=int, default=100)
    parser.add_argument("--fault-tries", type=int, default=0)
    return parser


def _file_name(text: str) -> str:
    if not text or text.startswith(".") or "/" in text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{text!r} is not a plain file name")
    return text


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
