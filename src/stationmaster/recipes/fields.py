"""What the fields of a recipe are made of: texts that are templates, expressions, paths and names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

STEP_NAME = r"^[a-z0-9][a-z0-9_-]{0,62}$"
IMAGE = r"^[A-Za-z0-9][A-Za-z0-9./:_-]{0,300}(@sha256:[0-9a-f]{64})?$"
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,126}$"


def inside(text: str) -> str:
    """`text` if it is a path below the job's folder; raises ValueError if it is empty, absolute or leaves it."""
    path = PurePosixPath(text)
    if not text or "\0" in text or path.is_absolute() or ".." in path.parts or path == PurePosixPath("."):
        raise ValueError(f"{text!r} must be a path inside the job's folder, without a leading / and without ..")
    return text


def _regular_expression(text: str) -> str:
    try:
        groups = re.compile(text).groups
    except re.error as error:
        raise ValueError(f"not a regular expression: {error}") from None
    if groups != 1:
        raise ValueError("needs exactly one group, around the digits of the step")
    return text


Template = Annotated[str, Field(max_length=10_000)]
Expression = Annotated[str, Field(max_length=1_000, min_length=1)]
InsidePath = Annotated[str, Field(max_length=1_000), AfterValidator(inside)]
StepPattern = Annotated[str, AfterValidator(_regular_expression)]
VariableName = Annotated[str, Field(pattern=_VARIABLE_NAME)]


class Part(BaseModel):
    """A part of a recipe: strict, frozen, without unknown fields."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)
