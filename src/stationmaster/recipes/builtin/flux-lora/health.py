"""Whether this machine can train: python3 health.py --trainer DIR [--python PYTHON] --device cuda:0

ai-toolkit's own modules are imported by the Python that will run them, so a package that is missing is found here.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from trainer_python import python_of

_CHECK = """
import sys
sys.path.insert(0, sys.argv[1])
import toolkit.config_modules, toolkit.job
from extensions_built_in.sd_trainer.DiffusionTrainer import DiffusionTrainer
if not hasattr(DiffusionTrainer, "should_save") or not hasattr(DiffusionTrainer, "should_sample"):
    sys.exit("error: this ai-toolkit is too old: it cannot be asked to save or to sample while it trains")
import torch
torch.zeros(1, device=sys.argv[2])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", type=Path, required=True)
    parser.add_argument("--python", default="")
    parser.add_argument("--device", required=True)
    arguments = parser.parse_args()
    python = python_of(arguments.trainer, arguments.python)
    os.execvp(python, [python, "-c", _CHECK, str(arguments.trainer), arguments.device])


if __name__ == "__main__":
    main()
