"""The catalogue of trained models, with their locations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from stationmaster.model import TrainedModel


class Models(Protocol):
    def listed(self) -> Sequence[TrainedModel]:
        """Newest first."""

    def find(self, reference: str) -> TrainedModel:
        """The model with this slug, beginning of a slug, name or job. Raises NotFound."""

    def publish(self, reference: str) -> TrainedModel:
        """Publish a local model to the Hub, with samples and card; files already there are not uploaded again."""

    def download(self, reference: str, target: Path) -> Path:
        """Copy a model to a folder, from any of its locations, and verify it.

        Raises NotFound, DeliveryError, TransferFailed, and UserError for a folder that is not writable.
        """
