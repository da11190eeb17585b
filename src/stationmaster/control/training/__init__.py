"""The training on the machine: its log, its vital signs, its stream, its checkpoints."""
