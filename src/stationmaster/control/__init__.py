"""Policy, retries and timing: takes each job one step further at a time."""
