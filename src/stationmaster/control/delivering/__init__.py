"""Bringing models to where they are kept: the Hub, a bucket, home."""
