"""Live streams (server-sent events): what is new goes to everybody who listens."""
