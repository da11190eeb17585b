"""Messages to people: one file per channel, and the texts."""
