"""The HTTP service: parse, call, answer."""
