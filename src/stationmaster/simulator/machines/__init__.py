"""The machines behind the API: real processes, real SSH."""
