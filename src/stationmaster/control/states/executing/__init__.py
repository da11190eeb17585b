"""EXECUTING: start the training, watch it, stop it."""
