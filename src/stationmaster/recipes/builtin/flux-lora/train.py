"""Run ai-toolkit so that it can be asked and watched: python3 train.py --trainer DIR --config FILE …

This process becomes ai-toolkit itself, so its signals, its exit code and its place in the process list are its own. A
child that it leaves beside itself reads its databases and writes its progress into the same log.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NoReturn

from job_database import JOB_ID, LOSSES, make_databases
from progress import watch
from trainer_python import python_of

_LARGEST_HEADER_BYTES = 100_000_000
# The data loader's processes hand each other files by sockets with paths such as /pymp-12345678/listener-12345678 below
# the folder for temporary files. With a path of more than 107 bytes they fail, and the training waits forever.
_LONGEST_TEMPORARY_FOLDER = 107 - 32


def main() -> NoReturn:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trainer", type=Path, required=True, help="the folder of ai-toolkit")
    parser.add_argument("--python", default="", help="the Python that has its packages")
    parser.add_argument("--config", required=True)
    parser.add_argument("--database", type=Path, required=True, help="the config's sqlite_db_path")
    parser.add_argument("--folder", type=Path, required=True, help="where it saves")
    parser.add_argument("--steps", type=int, required=True)
    arguments = parser.parse_args()
    losses = arguments.folder / LOSSES
    make_databases(arguments.database, losses, total_steps=arguments.steps)
    remove_cut_off(arguments.folder)
    sys.stdout.flush()
    trainer = os.getpid()
    python = python_of(arguments.trainer, arguments.python)
    if os.fork() == 0:
        config = Path(arguments.config)
        watch(trainer, arguments.database, losses, config=config, python=python, total_steps=arguments.steps)
        os._exit(0)
    os.environ["AITK_JOB_ID"] = JOB_ID
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_TEMPORARY_FOLDER:
        os.environ["TMPDIR"] = "/tmp"
    os.execvp(python, [python, str(arguments.trainer / "run.py"), arguments.config])


def remove_cut_off(folder: Path) -> None:
    """Remove checkpoints that were being written when an earlier try ended: the trainer would go on from the newest."""
    for path in sorted(folder.glob("*.safetensors")):
        if not is_whole(path):
            print(f"removing {path.name}: it was cut off while it was written")
            path.unlink()


def is_whole(path: Path) -> bool:
    """Whether header and data of a .safetensors file fit together."""
    try:
        with path.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            if not 2 <= header_bytes <= _LARGEST_HEADER_BYTES:
                return False
            header = json.loads(file.read(header_bytes))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        return bool(path.stat().st_size == 8 + header_bytes + max(ends, default=0))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return False


if __name__ == "__main__":
    main()
