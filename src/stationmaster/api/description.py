"""The app with a complete description of itself: the document of errors, and the errors that any route may answer."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from stationmaster.api.gate.chain import ANSWERS
from stationmaster.api.problems import problems
from stationmaster.station.wire.problem import Problem


class DescribedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        found = super().openapi()
        found.setdefault("components", {}).setdefault("schemas", {}).setdefault("Problem", Problem.model_json_schema())
        for methods in found["paths"].values():
            for operation in methods.values():
                for status, answer in problems(*ANSWERS).items():
                    operation["responses"].setdefault(str(status), answer)
        return found
