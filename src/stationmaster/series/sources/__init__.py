"""What other tools recorded of a training: from the bytes of their files to one Recording."""
