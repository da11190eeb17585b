"""What the facts of a run mean: one file per family of causes."""
