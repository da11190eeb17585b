"""The catalogue: models that were trained, and where they can be had."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stationmaster.model import TrainedModel


class Models(Protocol):
    def listed(self) -> Sequence[TrainedModel]:
        """Newest first."""

    def find(self, reference: str) -> TrainedModel:
        """The model meant by a slug, the beginning of one, a name or a job. Raises NotFound."""

    def publish(self, reference: str) -> TrainedModel:
        """Put a model that is at home on the Hub, with samples and card; what is there already is not sent again."""

    def download(self, reference: str, target: Path) -> Path:
        """A verified copy of a model in a folder, from wherever it lies.

        Raises NotFound, DeliveryError, TransferFailed, and UserError for a folder that cannot be written to.
        """
