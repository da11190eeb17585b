"""The simplest tables of 100 machines that others would write, to compare the terminal app with."""
