"""Stationmaster runs your trainings on rented GPUs and brings the models home."""

__version__ = "0.1.0"
