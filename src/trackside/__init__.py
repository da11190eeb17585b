"""What runs beside the training: standard library only, Python 3.8 or newer."""
