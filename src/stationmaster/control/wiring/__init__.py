"""From settings to the parts in use: the store, providers, the world."""
