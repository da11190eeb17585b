"""The machine of a job's attempt: renting, login, how it is reached, kept alive, stopped and given back."""
