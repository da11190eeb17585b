"""Recommendations turned into the parameters and the machine of the next job."""
