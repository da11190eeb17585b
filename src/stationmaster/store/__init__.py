"""The only thing the processes share: jobs, rentals, leases, events, logs, on SQLite or PostgreSQL."""
