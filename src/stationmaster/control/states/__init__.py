"""What is done to jobs in each state, one file per state: observe, decide, perform."""
