"""Credits, caps and what a job's time cost: who pays for what, and what keeps it within bounds."""
