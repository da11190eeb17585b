"""The settings that a run used, read from its trainer's config or its recipe's parameters."""
