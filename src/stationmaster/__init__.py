"""Stationmaster runs your trainings on rented GPUs and downloads the models."""

__version__ = "0.1.0"
