"""Writes the API's description, from which the types of the page are made: `python -m scripts.write_openapi FILE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from scripts.api_page import described_app


def main() -> None:
    file, text = Path(sys.argv[1]), json.dumps(described_app().openapi(), indent=1)
    if not file.exists() or file.read_text() != text:  # whatever is made from it stays valid
        file.write_text(text)


if __name__ == "__main__":
    main()
