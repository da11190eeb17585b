"""Edges to a machine: commands, files and ports on it, and typed calls on the trackside that runs there."""
