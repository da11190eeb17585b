"""What a run's rows and log show, before anything is judged."""
