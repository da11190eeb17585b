"""The collector of a training: `from trackside import Run`."""
