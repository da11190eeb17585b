"""How long a name may be that people give to something, or by which they ask for it."""

from __future__ import annotations

LONGEST_NAME = 200
"""Nothing has a longer name; the store would stumble over much longer ones."""
