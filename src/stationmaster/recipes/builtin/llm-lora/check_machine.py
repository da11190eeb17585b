"""Check that this machine can train: python3 check_machine.py [--cuda]"""

from __future__ import annotations

import argparse
import sys

import torch
import training  # noqa: F401 - imports everything that a training does
import transformers
import trl
from packing import attention_wanted


def main(arguments: list[str]) -> int:
    """Print the versions; with --cuda, also compute on the GPU. Returns 1 if that is not possible."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--cuda", action="store_true", help="fail unless a GPU can be used")
    options = parser.parse_args(arguments)
    print(f"trl {trl.__version__}, transformers {transformers.__version__}, torch {torch.__version__}", flush=True)
    if not options.cuda:
        return 0
    numbers = torch.ones(16, 16, dtype=torch.bfloat16, device="cuda")  # raises where there is no CUDA
    if float((numbers @ numbers).sum()) != 16**3 or not torch.cuda.is_bf16_supported(including_emulation=False):
        print(f"{torch.cuda.get_device_name()} cannot compute in bfloat16", file=sys.stderr)
        return 1
    print(f"{torch.cuda.get_device_name()}, attention: {attention_wanted('cuda') or 'sdpa'}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
