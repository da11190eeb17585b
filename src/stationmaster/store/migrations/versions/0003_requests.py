"""How often a person has asked a running training for a checkpoint, and for samples."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Integer

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("jobs")}
    for name in ("saves_asked", "samples_asked"):
        if name not in present:
            op.add_column("jobs", Column(name, Integer, nullable=False, server_default="0"))
