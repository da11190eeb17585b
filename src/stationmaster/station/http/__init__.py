"""The station of another computer, over its HTTP API: the same interfaces as the local one."""
