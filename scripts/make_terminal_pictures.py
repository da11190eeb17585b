"""Writes the pictures of the terminal app in docs/images, or says which are out of date.

python -m scripts.make_terminal_pictures          # write the pictures
python -m scripts.make_terminal_pictures --check  # exit 1 if a picture would change
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

IMAGES = Path(__file__).parents[1] / "docs/images"


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--check", action="store_true", help="write nothing")
    asked = options.parse_args()
    os.environ["TZ"] = "UTC"
    time.tzset()
    from tests.support.terminal.pictures import pictures

    stale = []
    for name, svg in pictures().items():
        path = IMAGES / f"{name}.svg"
        if not path.exists() or path.read_text() != svg:
            stale.append(name)
            if not asked.check:
                path.write_text(svg)
    print(f"{'out of date' if asked.check else 'wrote'}: {', '.join(stale) or 'nothing'}")
    return 1 if asked.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
