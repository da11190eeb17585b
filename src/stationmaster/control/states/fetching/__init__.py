"""FETCHING_RESULTS: bring the model and its files home."""
