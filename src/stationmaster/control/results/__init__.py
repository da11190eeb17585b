"""Files that are downloaded during a training or after it: checkpoints, samples, models."""
