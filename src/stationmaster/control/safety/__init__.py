"""The safety net under everything: machines that nobody works on any more."""
