"""What else can go wrong in a run: one small pure rule per file, and the table of them."""
