"""`python -m trackside`."""

from __future__ import annotations

import sys

from trackside.cli import main

if __name__ == "__main__":
    sys.exit(main())
