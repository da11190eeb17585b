"""Worker processes: the lease loop, the background worker, reloading of settings."""
