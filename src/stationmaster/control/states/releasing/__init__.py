"""RELEASING: clean up and give the machine back."""
