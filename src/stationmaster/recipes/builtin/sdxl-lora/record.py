"""Run sd-scripts, recorded if trackside runs beside it: python3 record.py --batch-size=N SCRIPT …

Without trackside this process becomes the plain script.
"""

from __future__ import annotations

import os
import sys


def main(arguments: list[str]) -> None:
    """Run the script that the arguments name after an option."""
    if os.environ.get("TRACKSIDE_DATABASE"):  # trackside sets it where it is to record
        try:
            from trackside.integrations import kohya
        except Exception as problem:  # noqa: BLE001 (a training is never stopped by what is recorded of it)
            print(f"steps are not recorded: {problem}", flush=True)
        else:
            kohya.main(arguments)
            return
    os.execv(sys.executable, [sys.executable, *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
