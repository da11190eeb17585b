"""Where a model can be."""

from __future__ import annotations

HUB = "hub"
BUCKET = "bucket"
HOME = "home"
