"""What home reads: status, logs and outputs."""
