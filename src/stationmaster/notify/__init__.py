"""Messages to people: one file per way to reach them, and the words themselves."""
