"""FETCHING_RESULTS: download the model and its files."""
