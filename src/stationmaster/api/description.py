"""The app with a complete description of itself: routes name the document of errors, which the description defines."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from stationmaster.station.wire.problem import Problem


class DescribedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        found = super().openapi()
        found.setdefault("components", {}).setdefault("schemas", {}).setdefault("Problem", Problem.model_json_schema())
        return found
