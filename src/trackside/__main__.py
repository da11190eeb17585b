"""Run one verb: `python -m trackside`, or the archive that home sends."""

from __future__ import annotations

import os
import sys

from trackside.code_cache import use_code_cache


def main(argv: list[str] | None = None) -> int:
    """Run one verb and return its exit status. An error is printed as one line on stderr."""
    arguments = sys.argv[1:] if argv is None else argv
    if "--root" in arguments[:-1]:
        use_code_cache(os.path.join(arguments[arguments.index("--root") + 1], ".trackside"))
    from trackside.verbs import run_verb  # only now: it may come from the cache

    return run_verb(arguments)


if __name__ == "__main__":
    sys.exit(main())
