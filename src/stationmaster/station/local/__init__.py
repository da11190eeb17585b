"""The station on the store itself: what a person with a laptop uses, and what the API serves."""
