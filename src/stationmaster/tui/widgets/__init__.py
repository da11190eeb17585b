"""Widgets that draw lines themselves and write only what has changed."""
