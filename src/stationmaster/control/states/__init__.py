"""What is done to jobs in each state, a module or folder per state: observe, decide, perform."""
