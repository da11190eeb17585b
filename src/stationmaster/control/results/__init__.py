"""Files of a training that come home while it runs or after: checkpoints, samples, models."""
