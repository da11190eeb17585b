"""A finished run, by what was measured and logged, as findings: what went wrong or was wasted, and what to change."""
