"""What all processes share, on SQLite or PostgreSQL: jobs, rentals, leases, events, logs. One module per noun."""
