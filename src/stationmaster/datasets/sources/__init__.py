"""Datasets that lie elsewhere: named, listed, and brought to a cache at home."""
