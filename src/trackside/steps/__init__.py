"""The plan's steps: read, start, supervise, judge and stop them."""
