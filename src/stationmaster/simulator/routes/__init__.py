"""The paths of the API, one file per subject."""
