"""Models on their way to people: what is in them, and where they go."""
