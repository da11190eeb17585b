"""The run's database on the machine: its tables, the journal in front of it, and how one is folded into the other."""
