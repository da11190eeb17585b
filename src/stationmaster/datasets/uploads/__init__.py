"""Datasets that arrive over HTTP, file by file and piece by piece, in a folder of the home."""
