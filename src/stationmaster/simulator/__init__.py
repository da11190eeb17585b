"""A Vast.ai that runs on your computer: the HTTP API and throw-away machines with their own SSH server."""
